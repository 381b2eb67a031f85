// A cache whose numbers are in a PageStore knows where each row is, after any operations.
#include "sextant/cache/page_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "sextant/base/error.h"
#include "tests/cache/sequences.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Pages of one number for each row.
class RowsById final : public PageStore {
 public:
  void resize(int64_t pages) override {
    if (is_full) throw std::runtime_error("no memory");
    all.resize(static_cast<size_t>(pages), std::vector<int64_t>(kShape.page_rows));
  }
  void copy_page(int64_t from, int64_t to) override {
    if (is_full) throw std::runtime_error("no memory");
    all[static_cast<size_t>(to)] = all[static_cast<size_t>(from)];
  }
  int64_t& at(StoredRow row) {
    return all[static_cast<size_t>(row.batch)][static_cast<size_t>(row.row)];
  }

  std::vector<std::vector<int64_t>> all;
  bool is_full = false;
};

class Stored : public ::testing::Test {
 protected:
  void append(int64_t sequence, int64_t rows) {
    const int64_t before = cache_.rows(sequence);
    cache_.grow(sequence, rows);
    for (int64_t row = before; row < before + rows; ++row) {
      store_.at(cache_.stored(sequence, row)) = next_;
      model_[sequence].push_back(next_++);
    }
  }
  void expect_held() {
    for (const auto& [sequence, rows] : model_) {
      ASSERT_EQ(cache_.rows(sequence), std::ssize(rows));
      for (size_t n = 0; n < rows.size(); ++n)
        ASSERT_EQ(store_.at(cache_.stored(sequence, static_cast<int64_t>(n))), rows[n])
            << sequence << " row " << n;
    }
  }
  void clear() {
    for (const auto& [sequence, rows] : model_) cache_.remove(sequence);
    model_.clear();
  }

  RowsById store_;
  KvCache cache_ = KvCache(kShape, store_);
  std::map<int64_t, std::vector<int64_t>> model_;  // the numbers of each sequence
  int64_t next_ = 0;
};

TEST_F(Stored, RowsAreFoundAfterAnyOperations) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 engine(seed);
    const auto up_to = [&](int64_t n) {
      return static_cast<int64_t>(engine() % static_cast<uint64_t>(n + 1));
    };
    model_[cache_.add()];
    for (int64_t step = 0; step < 100; ++step) {
      const auto any = std::next(model_.begin(), up_to(std::ssize(model_) - 1));
      const int64_t sequence = any->first;
      const int64_t kept = up_to(std::ssize(any->second)), operation = up_to(9);
      if (operation < 5) {
        append(sequence, up_to(40));
      } else if (operation < 7) {
        auto rows = any->second;
        rows.resize(static_cast<size_t>(kept));
        model_[cache_.fork(sequence, kept)] = std::move(rows);
      } else if (operation == 7) {
        cache_.truncate(sequence, kept);
        any->second.resize(static_cast<size_t>(kept));
      } else if (model_.size() > 1) {
        const auto other = any == model_.begin() ? std::next(any) : model_.begin();
        cache_.take(other->first, sequence);
        other->second = std::move(any->second);
        model_.erase(any);
      }
      expect_held();
    }
    clear();
    ASSERT_EQ(cache_.pages_in_use(), 0);
  }
}

TEST_F(Stored, AStoreWithoutMemoryLeavesTheCacheUnchanged) {
  model_[cache_.add()];
  append(0, 20);
  model_[cache_.fork(0, 20)] = model_[0];
  store_.is_full = true;
  EXPECT_THROW(cache_.grow(0, 1), std::runtime_error);
  store_.is_full = false;
  append(0, 12);
  store_.is_full = true;
  EXPECT_THROW(cache_.grow(0, 1), std::runtime_error);
  expect_held();
  EXPECT_EQ(cache_.pages_in_use(), 3);
}

TEST_F(Stored, FunctionsThatNeedRowsAreRefused) {
  const int64_t sequence = cache_.add();
  append(sequence, 3);
  const Rows rows(3, 1);
  const auto fails = [](const char* message, const std::function<void()>& call) {
    EXPECT_THAT(call, ThrowsMessage<Error>(HasSubstr(message)));
  };
  const std::string own = ": expected a cache with memory of its own";
  fails(("append" + own).c_str(), [&] { cache_.append(sequence, rows.k.view(), rows.v.view()); });
  fails(("drop" + own).c_str(), [&] { cache_.drop(sequence, 0, 1); });
  fails(("read" + own).c_str(), [&] { read(cache_, sequence); });
  fails(("a copy" + own).c_str(), [&] { const KvCache copy = cache_; });
  fails("rotated_keys: expected none", [&] { cache_.add(0, rotation(rotary({.dim = 8}))); });
  fails("grow: expected a cache with a PageStore", [&] {
    KvCache host(kShape);
    host.grow(host.add(), 1);
  });
  fails("grow: rows", [&] { cache_.grow(sequence, -1); });
  KvCacheShape int8 = kShape;
  int8.int8 = true;
  fails("dtype: expected float32, bfloat16 or float16 in a PageStore, but got int8",
        [&] { KvCache refused(int8, store_); });
  cache_.rerotate(sequence, 1000);
  EXPECT_EQ(cache_.first_position(sequence), 1000);
}

}  // namespace
}  // namespace sextant::testing
