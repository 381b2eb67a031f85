#include "sextant/position/buckets.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::ElementsAre;

// The smallest n with n^steps >= near^(steps - step) far^step, which long doubles hold exactly
// here.
int64_t slow_start(int64_t near, int64_t far, int64_t step, int64_t steps) {
  const auto power = [](int64_t base, int64_t exponent) {
    long double result = 1;
    for (; exponent > 0; --exponent) result *= static_cast<long double>(base);
    return result;
  };
  const long double bound = power(near, steps - step) * power(far, step);
  int64_t n = near;
  while (power(n, steps) < bound) ++n;
  return n;
}

TEST(T5Buckets, StandardStarts) {
  EXPECT_THAT(T5Buckets({}).starts(),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91));
  EXPECT_THAT(T5Buckets({.bidirectional = false}).starts(),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 21, 24, 27,
                          31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113));
}

// From golden/relative/t5_bucket_tables, nb8_md20, for key - query = -24 .. 24.
TEST(T5Buckets, AgreeWithTheOfficialCode) {
  const int kBidirectional[] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
                                3, 2, 2, 2, 2, 2, 1, 0, 5, 6, 6, 6, 6, 6, 7, 7, 7,
                                7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
  const int kCausal[] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 5, 5, 5, 4, 4, 3, 2, 1, 0};
  const T5Buckets bidirectional({.buckets = 8, .max_distance = 20});
  const T5Buckets causal({.buckets = 8, .max_distance = 20, .bidirectional = false});
  for (int64_t relative = -24; relative <= 24; ++relative) {
    const auto at = static_cast<size_t>(relative + 24);
    EXPECT_EQ(bidirectional.bucket(-relative), kBidirectional[at]) << relative;
    EXPECT_EQ(causal.bucket(-relative), relative < 0 ? kCausal[at] : 0) << relative;
  }
}

// far / near is a perfect power, so buckets begin at integers, where floating-point logarithms
// fail.
TEST(T5Buckets, TiesBelongToTheUpperBucket) {
  const T5Buckets buckets({.buckets = 16, .max_distance = 128, .bidirectional = false});
  EXPECT_EQ(buckets.bucket(15), 9);
  EXPECT_EQ(buckets.bucket(16), 10);
  EXPECT_EQ(buckets.bucket(31), 11);
  EXPECT_EQ(buckets.bucket(32), 12);
  EXPECT_EQ(buckets.bucket(63), 13);
  EXPECT_EQ(buckets.bucket(64), 14);
  // From 10 to 10 * 3^10 in 10 steps.
  const T5Buckets threes({.buckets = 20, .max_distance = 590490, .bidirectional = false});
  for (size_t step = 0, start = 10; step < 10; ++step, start *= 3) {
    EXPECT_EQ(threes.starts()[10 + step], static_cast<int64_t>(start));
  }
}

TEST(T5Buckets, StartsAreTheExactThresholds) {
  for (int64_t side = 2; side <= 12; ++side) {
    for (int64_t far = side / 2 + 1; far < 300; ++far) {
      const T5Buckets buckets({.buckets = side, .max_distance = far, .bidirectional = false});
      const int64_t near = side / 2;
      ASSERT_EQ(buckets.starts().size(), static_cast<size_t>(side));
      for (int64_t step = 0; step < side - near; ++step) {
        EXPECT_EQ(buckets.starts()[static_cast<size_t>(near + step)],
                  slow_start(near, far, step, side - near))
            << side << " " << far << " " << step;
      }
    }
  }
}

TEST(T5Buckets, FarDistancesShareTheLastBucket) {
  const T5Buckets buckets({});
  for (const int64_t distance :
       {int64_t{91}, int64_t{128}, int64_t{1} << 40, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(buckets.bucket(distance), 15);
    EXPECT_EQ(buckets.bucket(-distance), 31);
  }
  EXPECT_EQ(buckets.bucket(std::numeric_limits<int64_t>::min()), 31);
  EXPECT_EQ(buckets.buckets(), 32);
}

TEST(T5Buckets, LargeTablesAreMonotone) {
  const T5Buckets buckets({.buckets = 4096, .max_distance = (int64_t{1} << 31) - 1});
  const auto& starts = buckets.starts();
  EXPECT_TRUE(std::is_sorted(starts.begin(), starts.end()));
  EXPECT_EQ(starts.size(), 2048u);
  EXPECT_LT(starts.back(), (int64_t{1} << 31) - 1);
}

TEST(T5Buckets, RefusesImpossibleOptions) {
  for (const int64_t buckets : {-2, 0, 1, 2, 3, 33}) {
    EXPECT_THROW(T5Buckets({.buckets = buckets}), Error) << buckets;
  }
  EXPECT_THROW(T5Buckets({.buckets = 1, .bidirectional = false}), Error);
  EXPECT_NO_THROW(T5Buckets({.buckets = 33, .bidirectional = false}));
  EXPECT_THROW(T5Buckets({.max_distance = 8}), Error);
  EXPECT_NO_THROW(T5Buckets({.max_distance = 9}));
  EXPECT_THROW(T5Buckets({.max_distance = 16, .bidirectional = false}), Error);
  EXPECT_THROW(T5Buckets({.max_distance = int64_t{1} << 31}), Error);
}

// From golden/relative/deberta_log_bucket, b8_m16, for distances -32 .. 32.
TEST(DebertaBuckets, AgreeWithBothOfficialCodes) {
  const int kFromMinus16[] = {0, 1,  1,  1,  1,  1,  1,  2,  2,  2,  3,  3,  4,  5,  6,  7, 8,
                              9, 10, 11, 12, 13, 13, 14, 14, 14, 15, 15, 15, 15, 15, 15, 15};
  using Flavour = DebertaBuckets::Flavour;
  const DebertaBuckets hf({.buckets = 8, .max_positions = 16});
  const DebertaBuckets ms({.buckets = 8, .max_positions = 16, .flavour = Flavour::kMicrosoft});
  for (int64_t distance = -32; distance <= 32; ++distance) {
    const int row = distance < -16 ? 0 : distance > 16 ? 15 : kFromMinus16[distance + 16];
    EXPECT_EQ(hf.row(distance), row) << distance;
    EXPECT_EQ(ms.row(distance), distance < -15 ? 1 : row) << distance;
  }
}

TEST(DebertaBuckets, NearDistancesAreTheirOwnBuckets) {
  const DebertaBuckets buckets({});
  for (int64_t distance = -128; distance <= 128; ++distance) {
    EXPECT_EQ(buckets.bucket(distance), distance);
    EXPECT_EQ(buckets.row(distance), distance + 256);
  }
  EXPECT_EQ(buckets.bucket(511), 255);
  EXPECT_EQ(buckets.bucket(512), 256);
  EXPECT_EQ(buckets.row(std::numeric_limits<int64_t>::max()), 511);
  EXPECT_EQ(buckets.row(std::numeric_limits<int64_t>::min()), 0);
  EXPECT_EQ(buckets.rows(), 512);
}

TEST(DebertaBuckets, RefusesImpossibleOptions) {
  EXPECT_THROW(DebertaBuckets({.buckets = 0}), Error);
  EXPECT_THROW(DebertaBuckets({.buckets = 2}), Error);
  EXPECT_THROW(DebertaBuckets({.buckets = 7}), Error);
  EXPECT_THROW(DebertaBuckets({.buckets = 256, .max_positions = 129}), Error);
  EXPECT_NO_THROW(DebertaBuckets({.buckets = 256, .max_positions = 130}));
  EXPECT_THROW(DebertaBuckets({.max_positions = (int64_t{1} << 31) + 1}), Error);
}

}  // namespace
}  // namespace sextant
