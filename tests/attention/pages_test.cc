// Keys and values in pages give bitwise the same results as contiguous ones, wherever the pages
// lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <type_traits>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"
#include "sextant/base/packed.h"
#include "tests/attention/cpu_draws.h"

namespace sextant {
namespace {

constexpr int64_t kSpare = 3;  // pages that belong to no sequence

// The keys and values of a score, scattered over pages in random order. Rows past the end, and the
// spare pages, hold NaN.
template <class T>
class Paged {
 public:
  Paged(const Score<T>& whole, int64_t page_rows, uint64_t seed)
      : per_entry_((whole.k.rows + page_rows - 1) / page_rows), score(whole) {
    const int64_t pages = whole.k.batch * per_entry_ + kSpare;
    std::vector<int64_t> order(static_cast<size_t>(pages));
    for (int64_t n = 0; n < pages; ++n) order[static_cast<size_t>(n)] = n;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
    table_.assign(order.begin(), order.end() - kSpare);
    score.k = scattered(whole.k, page_rows, pages, k_);
    score.v = scattered(whole.v, page_rows, pages, v_);
    table_.push_back(0);  // so that the page table is not null even without keys
    score.pages = {.at = table_.data(), .batch_stride = per_entry_, .rows = whole.k.rows};
  }

 private:
  AnyView<const T> scattered(const AnyView<const T>& x, int64_t page_rows, int64_t pages,
                             std::vector<std::byte>& memory) {
    return HostAnyView(x).visit([&](const auto& view) -> AnyView<const T> {
      using Number = std::remove_cvref_t<decltype(*view.data)>;
      const int64_t count = pages * x.heads * page_rows * x.columns;
      memory.assign(static_cast<size_t>(count) * sizeof(Number), std::byte{0xff});  // NaN
      const HostView to(
          packed(reinterpret_cast<Number*>(memory.data()), pages, x.heads, page_rows, x.columns));
      for (int64_t b = 0; b < x.batch; ++b)
        for (int64_t h = 0; h < x.heads; ++h)
          for (int64_t j = 0; j < x.rows; ++j)
            for (int64_t c = 0; c < x.columns; ++c)
              to(table_[static_cast<size_t>(b * per_entry_ + j / page_rows)], h, j % page_rows, c) =
                  view(b, h, j, c);
      return to;
    });
  }

  int64_t per_entry_;
  std::vector<std::byte> k_, v_;
  std::vector<int64_t> table_;

 public:
  Score<T> score;
};

template <class T>
void expect_same(const RandomOptions& options, int64_t page_rows, const Backend& backend,
                 const Executor& executor = serial_executor()) {
  SCOPED_TRACE(to_string(options) + " pages of " + std::to_string(page_rows));
  RandomScore<T> random(options);
  random.score.scale = 0.2;
  const Attended<T> whole = random.new_attended(), paged = random.new_attended();
  attend(random.score, whole, backend, executor);
  attend(Paged<T>(random.score, page_rows, options.seed).score, paged, backend, executor);
  const HostAnyView out(whole.out), paged_out(paged.out);
  const HostView lse(whole.lse), paged_lse(paged.lse);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t i = 0; i < out.rows; ++i) {
        EXPECT_EQ(lse(b, h, i, 0), paged_lse(b, h, i, 0));
        for (int64_t c = 0; c < out.columns; ++c) EXPECT_EQ(out(b, h, i, c), paged_out(b, h, i, c));
      }
}

// Odd seeds draw operands of 16 bits too.
RandomOptions options_of(uint64_t seed, int64_t most_rows = 300) {
  RandomOptions o =
      seed % 2 == 0 ? draw_options(seed, most_rows) : draw_narrow_options(seed, most_rows);
  o.packed = 1;  // packed frames may begin at rows that are no multiple of kPageUnit
  return o;
}

TEST(Pages, GiveTheBitsOfOnePiece) {
  const auto pool = make_thread_pool(2);
  for (uint64_t seed = 0; seed < 60; ++seed)
    for (const int64_t page_rows : {16, 48, 256})
      expect_same<float>(options_of(seed), page_rows, cpu_backend(),
                         seed % 4 < 2 ? serial_executor() : *pool);
}

TEST(Pages, AreReadByTheReferenceToo) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const int64_t page_rows : {16, 48})
      expect_same<double>(options_of(seed, 65), page_rows, reference_backend());
}

TEST(Pages, ServeOneQueryOnALongCache) {
  for (const int64_t keys : {1, 255, 1000, 5000}) {
    RandomOptions o = {.batch = 3, .heads = 4, .key_heads = 2, .queries = 1, .keys = keys};
    o.columns = o.value_columns = 32;
    o.rotated = true;
    expect_same<float>(o, 64, cpu_backend(), *make_thread_pool(3));
    o.dtypes = {.k = DType::kFloat16, .v = DType::kBfloat16};
    expect_same<float>(o, 64, cpu_backend(), *make_thread_pool(3));
  }
}

TEST(Pages, ThatDoNotExistAreRefused) {
  const RandomOptions o = {.queries = 9, .keys = 40};
  RandomScore<float> random(o);
  const auto refused = [&](const Score<float>& score, const char* text) {
    EXPECT_THAT([&] { attend(score, random.new_attended(), cpu_backend(), serial_executor()); },
                ::testing::ThrowsMessage<Error>(::testing::HasSubstr(text)));
  };
  const Paged<float> paged(random.score, 16, 1);
  std::vector<int64_t> table = {0, 1, 2, 3, 4, 9};
  Score<float> score = paged.score;
  score.pages.at = table.data();
  refused(score, "pages.at[1, 2]: expected 0 to 8, but got 9");
  score = paged.score;
  score.k.rows = score.v.rows = 8;
  refused(score, "pages: k.rows: expected a multiple of 16, but got 8");
  score = paged.score;
  score.frames[0].key_row = 3;
  refused(score, "pages: frames.key_row: expected a multiple of 16, but got 3");
  const Attended<float> result = random.new_attended();
  EXPECT_THAT(
      [&] {
        attend_backward(paged.score, as_const(result), random.d_out, {}, cpu_backend(),
                        serial_executor());
      },
      ::testing::ThrowsMessage<Error>(::testing::HasSubstr("pages: expected none")));
}

}  // namespace
}  // namespace sextant
