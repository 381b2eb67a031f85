// cos and sin of rotary positions are within 0.53 ulp for any frequency, offset and position, and
// their bits do not depend on how the positions are split into runs.
#include "sextant/attention/rotary/cos_sin.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

#include "sextant/position/spectrum.h"
#include "tests/attention/every_target.h"

namespace sextant {
namespace {

constexpr Turns kQuarter = {uint64_t{1} << 62, 0};

struct Values {
  std::vector<float> cos, sin;
};

Values values(Turns frequency, Turns offset, const std::vector<PositionRun>& runs) {
  int64_t count = 0;
  for (const PositionRun& run : runs) count += run.count;
  Values result = {std::vector<float>(static_cast<size_t>(count)),
                   std::vector<float>(static_cast<size_t>(count))};
  cos_sin_of_positions(frequency, offset, runs, result.cos.data(), result.sin.data());
  return result;
}

double ulps(float value, double truth) {
  // The unit in the last place of the binade of `truth`; for subnormals, theirs.
  const double unit = std::ldexp(1, std::max(std::ilogb(truth), -126) - 23);
  return truth == 0 ? (value == 0 ? 0 : HUGE_VAL) : std::fabs(value - truth) / unit;
}

// cos_sin() itself is within 2^-26 ulp of float32.
void expect_right(Turns frequency, Turns offset, const PositionRun& run) {
  constexpr double kMost = 0.53;
  const Values got = values(frequency, offset, {run});
  for (int64_t n = 0; n < run.count; ++n) {
    const CosSin truth = cos_sin(offset + frequency * (run.first + n * run.step));
    ASSERT_LE(ulps(got.cos[static_cast<size_t>(n)], truth.cos), kMost)
        << "cos " << n << " from " << run.first << ", frequency " << frequency.high << " "
        << frequency.low;
    ASSERT_LE(ulps(got.sin[static_cast<size_t>(n)], truth.sin), kMost)
        << "sin " << n << " from " << run.first << ", frequency " << frequency.high << " "
        << frequency.low;
  }
}

void expect_same_bits(const Values& a, const Values& b) {
  const auto same = [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  };
  EXPECT_TRUE(std::ranges::equal(a.cos, b.cos, same));
  EXPECT_TRUE(std::ranges::equal(a.sin, b.sin, same));
}

// The positions of the runs, each as a run of its own.
std::vector<PositionRun> singly(const std::vector<PositionRun>& runs) {
  std::vector<PositionRun> result;
  for (const PositionRun& run : runs)
    for (int64_t n = 0; n < run.count; ++n)
      result.push_back({.first = run.first + n * run.step, .count = 1});
  return result;
}

// Compares one call for all runs with one call per position, and with one call for all positions as
// runs of length 1.
void expect_same_bits_singly(Turns frequency, Turns offset, const std::vector<PositionRun>& runs) {
  const Values together = values(frequency, offset, runs);
  Values alone;
  for (const PositionRun& time : singly(runs)) {
    const Values one = values(frequency, offset, {time});
    alone.cos.push_back(one.cos[0]);
    alone.sin.push_back(one.sin[0]);
  }
  expect_same_bits(together, alone);
  expect_same_bits(together, values(frequency, offset, singly(runs)));
}

// Frequencies from 1/4 turn per step down to 2^-60, slower than the slowest pair of any model.
template <class Use>
void for_frequencies(const Use& use) {
  std::mt19937_64 random(1);
  for (int shift = 2; shift <= 60; ++shift) {
    const Turns frequency = {random() >> shift, random()};
    use(shift % 3 == 0 ? Turns{} - frequency : frequency, Turns{random(), random()},
        static_cast<int64_t>(random() >> 33));
  }
}

void expect_right_everywhere() {
  for_frequencies([](Turns frequency, Turns offset, int64_t far) {
    expect_right(frequency, {}, {.first = 0, .count = 1100});
    expect_right(frequency, {}, {.first = -700, .count = 1100});
    expect_right(frequency, {}, {.first = far, .count = 1100});
    expect_right(frequency, offset, {.first = -far, .count = 1100});
  });
  for (const double base : {1e4, 5e5, 1e7}) {
    for (const Rotation::Pair& pair : rotation(rotary({.dim = 64, .base = base})).pairs) {
      expect_right(pair.frequency, {}, {.first = 0, .count = 300});
      expect_right(pair.frequency, {}, {.first = 1000000, .count = 300});
      expect_right(pair.frequency, {}, {.first = (int64_t{1} << 31) - 300, .count = 300});
    }
  }
}

// At one position of the run the phase is a quarter turn or within 2^-12 to 2^-124 turns of one.
void expect_right_beside_zeros() {
  std::mt19937_64 random(2);
  for_frequencies([&](Turns frequency, Turns, int64_t far) {
    for (int nearness = 12; nearness <= 124; nearness += 7) {
      const Turns rest = nearness < 64 ? Turns{uint64_t{1} << (64 - nearness), random()}
                                       : Turns{0, uint64_t{1} << (128 - nearness)};
      const int64_t time = far + static_cast<int64_t>(random() % 300);
      const Turns zero = kQuarter * nearness - frequency * time;
      expect_right(frequency, zero, {.first = far, .count = 300});
      expect_right(frequency, zero + rest, {.first = far, .count = 300});
      expect_right(frequency, zero - rest, {.first = far, .count = 300});
    }
  });
}

void expect_same_bits_in_any_runs() {
  std::mt19937_64 random(3);
  for_frequencies([&](Turns frequency, Turns offset, int64_t far) {
    const int64_t first = (random() % 2 == 0 ? far : -far) % 100000;
    expect_same_bits_singly(frequency, offset, {{.first = far, .count = 70}});
    expect_same_bits_singly(frequency, {}, {{.first = first, .count = 1100}});
    // Runs that begin anywhere in a long one, across the positions where the kernel's anchors
    // change.
    const Values whole = values(frequency, offset, {{.first = first, .count = 6000}});
    for (int64_t n = 0; n < 30; ++n) {
      const auto at = static_cast<int64_t>(random() % 4900);
      const auto count = static_cast<int64_t>(1 + random() % 1100);
      const auto part = [&](const std::vector<float>& x) {
        return std::vector<float>(x.begin() + at, x.begin() + at + count);
      };
      expect_same_bits(values(frequency, offset, {{.first = first + at, .count = count}}),
                       {part(whole.cos), part(whole.sin)});
    }
    for (const int64_t step : {-1, 2, -7, 32, 129, 2051, 1000003})
      expect_same_bits_singly(frequency, offset, {{.first = first, .step = step, .count = 50}});
    expect_same_bits_singly(frequency, {},
                            {{.first = first, .step = 0, .count = 5},
                             {.first = first + 1, .step = 0, .count = 5},
                             {.first = -5, .count = 40},
                             {.first = far, .step = 3, .count = 2},
                             {.first = first, .count = 0},
                             {.first = first, .count = 1}});
  });
}

// A phase whose sine lies within 2^-60 of the midpoint between two floats, so that two computations
// that differ at all may round it differently.
Turns phase_of_tie(std::mt19937_64& random) {
  const float low = std::uniform_real_distribution<float>(0.3F, 0.7F)(random);
  const long double middle = (static_cast<long double>(low) + std::nextafter(low, 1.0F)) / 2;
  const long double turns = std::asin(middle) / (2 * std::numbers::pi_v<long double>);
  return {static_cast<uint64_t>(std::ldexp(turns, 64)), 0};
}

void expect_same_bits_of_ties_in_any_runs() {
  std::mt19937_64 random(4);
  for_frequencies([&](Turns frequency, Turns, int64_t far) {
    for (int n = 0; n < 20; ++n) {
      const int64_t time = (n % 2 == 0 ? far : -far) + n;
      const Turns offset =
          phase_of_tie(random) - frequency * time - (n % 4 < 2 ? Turns{} : kQuarter);
      const Values alone = values(frequency, offset, {{.first = time, .count = 1}});
      for (const int64_t step : {1, 1, 1, 1, 2, -3, 900}) {
        const auto before = static_cast<int64_t>(random() % 3000);
        const PositionRun run = {
            .first = time - before * step, .step = step, .count = before + 200};
        const Values all = values(frequency, offset, {run});
        const auto at = static_cast<size_t>(before);
        expect_same_bits(alone, {{all.cos[at]}, {all.sin[at]}});
      }
    }
  });
}

TEST(CosSinOfTimes, AreRightToTheLastBitOrTheOneBesideIt) {
  on_every_target(expect_right_everywhere);
}

TEST(CosSinOfTimes, AreRightBesideZeros) { on_every_target(expect_right_beside_zeros); }

// The slowest possible frequencies: all values lie next to a zero.
TEST(CosSinOfTimes, AreRightWhereAllTimesAreBesideAZero) {
  on_every_target([] {
    for (const Turns frequency : {Turns{0, 1}, Turns{0, 0x8765}, Turns{1, 0}, Turns{1 << 20, 5}})
      for (int64_t quarter = 0; quarter < 4; ++quarter)
        for (const Turns step : {frequency, Turns{} - frequency}) {
          expect_right(step, kQuarter * quarter, {.first = -150, .count = 300});
          expect_right(step, kQuarter * quarter, {.first = (int64_t{1} << 31) - 99, .count = 99});
        }
  });
}

TEST(CosSinOfTimes, AreRightAtPartsOfATurn) {
  on_every_target([] {
    for (int shift = 0; shift < 5; ++shift)
      for (const uint64_t low : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}})
        for (const int64_t first : {int64_t{-350}, (int64_t{1} << 31) - 700})
          expect_right({uint64_t{1} << (63 - shift), low}, {}, {.first = first, .count = 700});
  });
}

TEST(CosSinOfTimes, StandStillWithoutAFrequency) {
  for (const Turns offset : {Turns{}, kQuarter, Turns{123, 456}, Turns{uint64_t{1} << 60, 7}}) {
    expect_right({}, offset, {.first = -3, .count = 300});
    expect_same_bits_singly({}, offset, {{.first = -3, .count = 300}});
  }
  EXPECT_TRUE(values({1, 0}, {}, {}).cos.empty());
}

TEST(CosSinOfTimes, HaveTheSameBitsInAnyRuns) { on_every_target(expect_same_bits_in_any_runs); }

TEST(CosSinOfTimes, HaveTheSameBitsInAnyRunsBetweenTwoFloats) {
  on_every_target(expect_same_bits_of_ties_in_any_runs);
}

}  // namespace
}  // namespace sextant
