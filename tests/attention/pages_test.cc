// Keys and values in pages give bitwise the same results as contiguous ones, wherever the pages
// lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"
#include "tests/attention/cpu_draws.h"
#include "tests/attention/paged.h"

namespace sextant {
namespace {

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
      expect_same_in_pages<float>(options_of(seed), page_rows, cpu_backend(),
                                  seed % 4 < 2 ? serial_executor() : *pool);
}

TEST(Pages, AreReadByTheReferenceToo) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const int64_t page_rows : {16, 48})
      expect_same_in_pages<double>(options_of(seed, 65), page_rows, reference_backend());
}

TEST(Pages, ServeOneQueryOnALongCache) {
  for (const int64_t keys : {1, 255, 1000, 5000}) {
    RandomOptions o = {.batch = 3, .heads = 4, .key_heads = 2, .queries = 1, .keys = keys};
    o.columns = o.value_columns = 32;
    o.rotated = true;
    expect_same_in_pages<float>(o, 64, cpu_backend(), *make_thread_pool(3));
    o.dtypes = {.k = DType::kFloat16, .v = DType::kBfloat16};
    expect_same_in_pages<float>(o, 64, cpu_backend(), *make_thread_pool(3));
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
