// A cache returns the rows that were appended, after any other operations.
#include "sextant/cache/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "sextant/base/error.h"
#include "tests/cache/sequences.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The expected contents: for each sequence, the rows of `all` that it holds copies of.
using Model = std::map<int64_t, std::vector<int64_t>>;

void expect_holds(const KvCache& cache, const Model& model, const Rows& all) {
  for (const auto& [sequence, rows] : model) {
    ASSERT_EQ(cache.rows(sequence), static_cast<int64_t>(rows.size()));
    const Rows got = read(cache, sequence);
    for (int64_t h = 0; h < kHeads; ++h)
      for (size_t n = 0; n < rows.size(); ++n) {
        const auto row = static_cast<int64_t>(n);
        for (int64_t c = 0; c < kColumns; ++c)
          ASSERT_EQ(got.k(0, h, row, c), all.k(0, h, rows[n], c)) << sequence << " row " << row;
        for (int64_t c = 0; c < kValueColumns; ++c)
          ASSERT_EQ(got.v(0, h, row, c), all.v(0, h, rows[n], c)) << sequence << " row " << row;
      }
  }
}

TEST(KvCache, HoldsWhatWasPutIntoItAfterAnyOperations) {
  const Rows all(4000, 1);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 engine(seed);
    const auto up_to = [&](int64_t n) {
      return static_cast<int64_t>(engine() % static_cast<uint64_t>(n + 1));
    };
    KvCache cache(kShape);
    Model model = {{cache.add(), {}}};
    for (int64_t step = 0, used = 0; step < 100; ++step) {
      auto any = std::next(model.begin(), up_to(static_cast<int64_t>(model.size()) - 1));
      auto& [sequence, rows] = *any;
      const auto count = static_cast<int64_t>(rows.size());
      const int64_t operation = up_to(9);
      if (operation < 5) {
        const int64_t more = up_to(40);
        cache.append(sequence, part(all.k, used, used + more), part(all.v, used, used + more));
        for (int64_t n = 0; n < more; ++n) rows.push_back(used++);
      } else if (operation == 5) {
        const int64_t kept = up_to(count);
        model[cache.fork(sequence, kept)].assign(rows.begin(), rows.begin() + kept);
      } else if (operation == 6) {
        rows.resize(static_cast<size_t>(up_to(count)));
        cache.truncate(sequence, static_cast<int64_t>(rows.size()));
      } else if (operation < 9) {
        const int64_t first = up_to(count), gone = up_to(count - first);
        cache.drop(sequence, first, gone);
        rows.erase(rows.begin() + first, rows.begin() + first + gone);
      } else if (model.size() > 1) {
        cache.remove(sequence);
        model.erase(any);
      }
      expect_holds(cache, model, all);
      if (HasFatalFailure()) return;
    }
    for (const auto& [sequence, rows] : model) cache.remove(sequence);
    EXPECT_EQ(cache.pages_in_use(), 0);
  }
}

TEST(KvCache, AForkCostsNothingUntilItDiffers) {
  KvCache cache(kShape);
  const Rows rows(40, 1), more(1, 2);
  const int64_t sequence = filled(cache, rows);
  EXPECT_EQ(cache.pages_in_use(), 3);
  const int64_t fork = cache.fork(sequence, 40);
  EXPECT_EQ(cache.pages_in_use(), 3);
  cache.append(fork, more.k.view(), more.v.view());
  EXPECT_EQ(cache.pages_in_use(), 4);  // 3 and the fork's own last page
  EXPECT_EQ(largest_difference(read(cache, sequence).k, rows.k), 0);
  cache.remove(sequence);
  EXPECT_EQ(cache.pages_in_use(), 3);
}

constexpr double kOneTurn = 4e-6;  // error of one more float32 rotation of keys of a few units

TEST(KvCache, RerotateMovesATextAsIfItHadBeenThere) {
  const Rows rows(50, 3);
  const Rotation rotation = rope(), stretched = rope(8);
  KvCache cache(kShape);
  const int64_t sequence = filled(cache, rows, 0, rotation);
  const int64_t shared = cache.fork(sequence, 50);
  const Rows before = read(cache, shared);
  cache.rerotate(sequence, int64_t{1} << 45);
  EXPECT_EQ(cache.first_position(sequence), int64_t{1} << 45);
  const int64_t there = filled(cache, rows, int64_t{1} << 45, rotation);
  EXPECT_LE(largest_difference(read(cache, sequence).k, read(cache, there).k), kOneTurn);
  cache.rerotate(sequence, stretched);
  const int64_t otherwise = filled(cache, rows, int64_t{1} << 45, stretched);
  EXPECT_LE(largest_difference(read(cache, sequence).k, read(cache, otherwise).k), 2 * kOneTurn);
  EXPECT_EQ(largest_difference(read(cache, shared).k, before.k), 0);

  const int64_t plain = filled(cache, rows);
  cache.rerotate(plain, 77);
  EXPECT_EQ(cache.first_position(plain), 77);
  EXPECT_EQ(largest_difference(read(cache, plain).k, rows.k), 0);
}

TEST(KvCache, RowsBehindADroppedOneStandWhereTheyMove) {
  const Rows rows(60, 4);
  const Rotation rotation = rope(2);
  KvCache cache(kShape);
  const int64_t sequence = filled(cache, rows, 9, rotation);
  cache.drop(sequence, 4, 21);
  const int64_t expected = cache.add(9, rotation);
  cache.append(expected, part(rows.k, 0, 4), part(rows.v, 0, 4));
  cache.append(expected, part(rows.k, 25, 60), part(rows.v, 25, 60));
  EXPECT_LE(largest_difference(read(cache, sequence).k, read(cache, expected).k), kOneTurn);
  EXPECT_EQ(largest_difference(read(cache, sequence).v, read(cache, expected).v), 0);
}

TEST(KvCache, SaysWhatItDoesNotTake) {
  const auto fails = [](const std::function<void()>& action, const char* sequence) {
    EXPECT_THAT(action, ThrowsMessage<Error>(HasSubstr(sequence)));
  };
  fails([] { KvCache({.key_columns = 8, .page_rows = 100}); },
        "kv cache: page_rows: expected a multiple of 16, but got 100");
  fails([] { KvCache({.key_columns = 8, .dtype = DType::kFloat64}); },
        "kv cache: dtype: expected float32, bfloat16 or float16, but got float64");
  fails([] { KvCache cache({.key_heads = 0, .key_columns = 8}); }, "key_heads: expected 1 to");
  KvCache cache(kShape);
  const Rows rows(20, 5);
  const int64_t sequence = filled(cache, rows);
  fails([&] { cache.rows(99); },
        "sequence: expected one that was added and not removed, but got 99");
  fails([&] { cache.fork(sequence, 21); }, "rows: expected 0 to 20, but got 21");
  fails([&] { cache.truncate(sequence, -1); }, "rows: expected 0 to 20, but got -1");
  fails([&] { cache.drop(sequence, 15, 6); }, "count: expected 0 to 5, but got 6");
  fails([&] { cache.append(sequence, rows.v.view(), rows.v.view()); },
        "k.columns: expected 8, but got 5");
  fails([&] { cache.append(sequence, rows.k.view(), part(rows.v, 0, 3)); }, "v.rows: expected 20");
  fails([&] { cache.append(sequence, rows.k.view(), rows.v.view(), 1); }, "b: expected 0 to 0");
  View<const float> nowhere = rows.k.view();
  nowhere.data = nullptr;
  fails([&] { cache.append(sequence, nowhere, rows.v.view()); },
        "k: expected data, but got a null pointer");
  fails([&] { cache.rerotate(sequence, rope()); }, "rotated keys");
  fails([&] { cache.add(0, rotation(with_xpos(rotary({.dim = 8}), 0.4, 512))); }, "without growth");
  fails([&] { cache.add(0, rotation(rotary({.dim = 16}))); },
        "rotated_keys.pairs: expected 0 to 7");
  const Rotation one = rope(), other = rope(2);
  const int64_t rotated = filled(cache, rows, 0, one);
  const CachedBatch::Entry entry = {rotated, &other};
  fails([&] { CachedBatch batch(cache, {&entry, 1}, 1); }, "of its rotated keys");
  fails(
      [&] {
        CachedBatch batch(cache, {&entry, 1}, 21);
      },
      "queries: expected 0 to 20, but got 21");
}

}  // namespace
}  // namespace sextant::testing
