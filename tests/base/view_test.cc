// contiguous() gives a view of the memory, and refuses memory of another size.
#include "sextant/base/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <span>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Contiguous, ElementsFollowOneAnother) {
  std::vector<float> x(2 * 3 * 4 * 5);
  std::iota(x.begin(), x.end(), 0.0F);
  const HostView view(contiguous(x, {.batch = 2, .heads = 3, .rows = 4, .columns = 5}));
  float next = 0;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 3; ++h)
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(view(b, h, i, c), next++);
}

TEST(Contiguous, TakesArraysSpansAndPointers) {
  float array[3] = {};
  const std::array<double, 3> constant{};
  const std::span span(array);
  const View<const double> of_constant = contiguous(constant, {.rows = 3});
  EXPECT_EQ(of_constant.data, constant.data());
  EXPECT_EQ(contiguous(array, {.rows = 3}).data, array);
  EXPECT_EQ(contiguous(span, {.columns = 3}).data, array);
  EXPECT_EQ(contiguous(&array[0], {.rows = 2}).data, array);
}

TEST(Contiguous, RefusesAnotherSize) {
  const std::vector<float> x(5);
  EXPECT_THAT([&] { contiguous(x, {.heads = 2, .rows = 3}); },
              ThrowsMessage<Error>(HasSubstr("expected 6 elements (1 x 2 x 3 x 1), but got 5")));
  EXPECT_THAT([&] { contiguous(x, {.heads = -1, .rows = -5}); },
              ThrowsMessage<Error>(HasSubstr("expected sizes of at least 0")));
}

TEST(Contiguous, RefusesAProductThatOverflows) {
  const std::vector<float> none;
  constexpr int64_t kLarge = int64_t{1} << 32;
  const auto refused = ThrowsMessage<Error>(
      HasSubstr("expected at most 2^60 elements, but got 1 x 1 x 4294967296 x 4294967296"));
  EXPECT_THAT([&] { contiguous(none, {.rows = kLarge, .columns = kLarge}); }, refused);
  EXPECT_THAT([&] { contiguous(none, {.batch = 0, .heads = kLarge, .rows = kLarge}); },
              ThrowsMessage<Error>(HasSubstr("0 x 4294967296 x 4294967296")));
  EXPECT_EQ(contiguous(none, {.rows = kLarge, .columns = 0}).rows, kLarge);
}

TEST(View, ConvertsToAViewOfConstants) {
  std::vector<float> x(6);
  const View<float> view = contiguous(x, {.rows = 2, .columns = 3});
  const View<const float> constant = view;
  EXPECT_EQ(constant.data, x.data());
  EXPECT_EQ(constant.row_stride, 3);
  EXPECT_EQ(constant.columns, 3);
}

}  // namespace
}  // namespace sextant
