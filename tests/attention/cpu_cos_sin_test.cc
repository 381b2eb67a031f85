// Phases by vectors are those of position/, bit for bit, whatever the speed, the place and the length.
#include "sextant/attention/cpu/cos_sin.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

namespace sextant {
namespace {

void expect_same(Turns start, Turns step, int64_t count) {
  const auto size = static_cast<size_t>(count);
  std::vector<float> cos(size), sin(size);
  cpu::fast_cos_sin_run(start, step, count, cos.data(), sin.data());
  for (size_t n = 0; n < size; ++n) {
    const CosSin expected = cos_sin(start + step * static_cast<int64_t>(n));
    ASSERT_EQ(std::bit_cast<uint32_t>(cos[n]),
              std::bit_cast<uint32_t>(static_cast<float>(expected.cos)))
        << "cos " << n << " of " << count << ", step " << step.high;
    ASSERT_EQ(std::bit_cast<uint32_t>(sin[n]),
              std::bit_cast<uint32_t>(static_cast<float>(expected.sin)))
        << "sin " << n << " of " << count << ", step " << step.high;
  }
}

void expect_all_the_same() {
  std::mt19937_64 random(1);
  // From 1/4 turn a step down to 2^-60: past the slowest pair of any model.
  for (int shift = 2; shift <= 60; ++shift) {
    const Turns step = {random() >> shift, random()};
    const auto far = static_cast<int64_t>(random() >> 33);
    expect_same({}, step, 700);
    expect_same(step * far, step, 128 + shift);
    expect_same(step * -far, step, 1100);
  }
  for (const int64_t count : {0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 575, 576, 1024})
    expect_same({}, {uint64_t{1} << 60, 3}, count);
}

TEST(CpuCosSin, HasTheBitsOfPosition) { expect_all_the_same(); }

// Values at and beside zeros, ones and eighths of a turn, where rounding is in doubt.
TEST(CpuCosSin, HasTheBitsOfPositionWhereRoundingIsInDoubt) {
  for (int shift = 0; shift < 5; ++shift)
    for (const uint64_t low : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}})
      expect_same({}, {uint64_t{1} << (63 - shift), low}, 700);
  expect_same({uint64_t{1} << 62, 0}, {1, 0}, 700);
  expect_same({}, {}, 700);
}

TEST(CpuCosSin, HasTheBitsOfPositionOnEverySimdTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    expect_all_the_same();
  }
  hwy::SetSupportedTargetsForTest(0);
}

// Where the least that cos may be lies half way between two floats, it must not be taken down to the even
// one: the exact value is above.
TEST(CpuCosSin, NearTiesRoundAsOneByOne) {
  for (const uint64_t high : {0x2aaaaa9324ac6222U, 0x2aaaaa350cbeb497U}) {
    const Turns start = {high, 0}, step = {uint64_t{1} << 58, 12345};
    std::vector<float> cos(200), sin(200), c(200), s(200);
    cpu::fast_cos_sin_run(start, step, 200, cos.data(), sin.data());
    cos_sin_run(start, step, 200, c.data(), s.data());
    EXPECT_EQ(cos, c);
    EXPECT_EQ(sin, s);
  }
}

}  // namespace
}  // namespace sextant
