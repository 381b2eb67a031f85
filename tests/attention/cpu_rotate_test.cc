// rotate_rows() in place has the bits of the formula with cos and sin of each position alone, for
// any pairing and any strides.
#include "sextant/attention/rotary/rotate.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "sextant/attention/rotary/cos_sin.h"
#include "sextant/base/error.h"
#include "tests/attention/every_target.h"

namespace sextant {
namespace {

struct Sizes {
  int64_t batch = 1, heads = 2, rows = 300, columns = 48, column_stride = 1;
};

// Rows with gaps between them, so that the test sees writes outside the rotated columns.
struct Operand {
  std::vector<float> data;
  HostView<float> view;

  explicit Operand(const Sizes& s) {
    const int64_t row = s.columns * s.column_stride + 3;
    data.resize(static_cast<size_t>(s.batch * s.heads * s.rows * row));
    std::mt19937 random(7);
    for (float& x : data) x = std::uniform_real_distribution<float>(-1, 1)(random);
    view = HostView(View<float>{data.data(), s.batch, s.heads, s.rows, s.columns,
                                s.heads * s.rows * row, s.rows * row, row, s.column_stride});
  }
};

std::vector<int64_t> positions_of(int64_t count) {
  std::vector<int64_t> rotary_positions;
  for (int64_t n = 0; n < count; ++n)
    rotary_positions.push_back(n < 200 ? 5000 + n : n * n - (1 << 20));
  return rotary_positions;
}

void rotate_by_formula(const HostView<float>& x, const SideRotation& side) {
  const Rotation& rotation = *side.rotation;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t row = 0; row < x.rows; ++row)
        for (const Rotation::Pair& pair : rotation.pairs) {
          const int64_t time = side.rotary_positions[b * side.batch_stride + row * side.row_stride];
          const PositionRun run = {.first = time, .count = 1};
          float cos = 0, sin = 0;
          cos_sin_of_positions(pair.frequency, {}, {&run, 1}, &cos, &sin);
          cos = static_cast<float>(cos * rotation.gain);
          sin = static_cast<float>(sin * rotation.gain);
          float &a = x(b, h, row, pair.first), &c = x(b, h, row, pair.second);
          const float rotated = std::fma(-c, sin, a * cos);
          c = std::fma(a, sin, c * cos);
          a = rotated;
        }
}

void expect_formula(const Rotation& rotation, const Sizes& sizes, int threads) {
  const std::vector<int64_t> rotary_positions = positions_of(sizes.batch * sizes.rows);
  const SideRotation side = {.rotation = &rotation,
                             .rotary_positions = rotary_positions.data(),
                             .batch_stride = sizes.rows};
  Sizes other = sizes;
  other.heads = 1;
  other.columns += 5;
  Operand a(sizes), b(other), expected_a(sizes), expected_b(other);
  rotate_by_formula(expected_a.view, side);
  rotate_by_formula(expected_b.view, side);
  const HostView<float> views[] = {a.view, b.view};
  rotate_rows(views, side, *make_thread_pool(threads));
  EXPECT_EQ(a.data, expected_a.data);
  EXPECT_EQ(b.data, expected_b.data);
}

Rotation rotation_of(int64_t dim, Pairing pairing, int64_t first_column = 0) {
  return rotation(rotary({.dim = dim, .pairing = pairing, .first_column = first_column}));
}

void expect_formula_of_all_layouts() {
  for (const Pairing pairing : {Pairing::kHalfSplit, Pairing::kInterleaved}) {
    expect_formula(rotation_of(48, pairing), {}, 1);
    expect_formula(rotation_of(38, pairing, 4), {}, 3);
    expect_formula(rotation_of(20, pairing), {.batch = 2, .rows = 17, .column_stride = 2}, 2);
  }
}

TEST(CpuRotate, IsTheFormulaBitByBitInEveryLayout) { expect_formula_of_all_layouts(); }

TEST(CpuRotate, IsTheFormulaBitByBitOnEverySimdTarget) {
  on_every_target([] {
    // Without a fused multiply-add the last bit differs.
    if (simd_target().starts_with("AVX") || !HWY_ARCH_X86) expect_formula_of_all_layouts();
  });
}

TEST(CpuRotate, MultipliesByTheGain) {
  Rotation scaled = rotation_of(32, Pairing::kHalfSplit);
  scaled.gain = 1.25;
  expect_formula(scaled, {}, 2);
}

TEST(CpuRotate, TakesPairsOfAnyColumns) {
  Rotation mixed = rotation_of(16, Pairing::kInterleaved);
  std::swap(mixed.pairs[2], mixed.pairs[5]);
  std::swap(mixed.pairs[3].first, mixed.pairs[3].second);
  mixed.pairs[7].second = 40;
  expect_formula(mixed, {}, 2);
}

TEST(CpuRotate, RefusesColumnsThatAreNotThereAndGrowth) {
  const std::vector<int64_t> rotary_positions = positions_of(300);
  Operand x({.columns = 16});
  const HostView<float> views[] = {x.view};
  Rotation wide = rotation_of(32, Pairing::kHalfSplit);
  EXPECT_THROW(rotate_rows(views, {.rotation = &wide, .rotary_positions = rotary_positions.data()},
                           serial_executor()),
               Error);
  Rotation growing = rotation_of(16, Pairing::kHalfSplit);
  growing.pairs[0].growth = 0.01;
  EXPECT_THROW(
      rotate_rows(views, {.rotation = &growing, .rotary_positions = rotary_positions.data()},
                  serial_executor()),
      Error);
}

}  // namespace
}  // namespace sextant
