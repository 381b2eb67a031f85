#include "sextant/base/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace sextant {
namespace {

using testing::ElementsAre;

// From kat_vectors of Random123.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(
      philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(CounterRandom, StreamsAndSeedsDiffer) {
  std::set<uint64_t> seen;
  for (const uint64_t seed : {0, 1}) {
    for (const char* stream : {"a", "b"}) {
      const CounterRandom random(seed, stream);
      for (uint64_t n = 0; n < 100; ++n) seen.insert(random.bits(n));
    }
  }
  EXPECT_EQ(seen.size(), 400);
}

TEST(CounterRandom, NormalHasTheMomentsOfANormal) {
  const CounterRandom random(7, "moments");
  constexpr int kCount = 200'000;
  double mean = 0, variance = 0, fourth = 0;
  for (uint64_t n = 0; n < kCount; ++n) {
    const double x = random.normal(n);
    mean += x / kCount;
    variance += x * x / kCount;
    fourth += x * x * x * x / kCount;
  }
  // Five standard errors each.
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(variance, 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96.0 / kCount));
}

TEST(CounterRandom, BelowReachesEveryNumberAndNoOther) {
  const CounterRandom random(7, "below");
  std::set<uint64_t> seen;
  for (uint64_t n = 0; n < 1000; ++n) seen.insert(random.below(7, n));
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(random.below(1, 5), 0);
}

}  // namespace
}  // namespace sextant
