#include "sextant/position/row_map.h"

#include <gmock/gmock.h>

#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Diagonals kFiveToMinusFive{.farthest = 5, .count = 11};

TEST(RowMap, ShawsRowsGrowWithTheKey) {
  EXPECT_THAT(clipped_row_map(kFiveToMinusFive, 2, RowOrder::kKeyMinusQuery),
              ElementsAre(0, 0, 0, 0, 1, 2, 3, 4, 4, 4, 4));
}

TEST(RowMap, TheMirroredOrderCountsDistances) {
  EXPECT_THAT(clipped_row_map(kFiveToMinusFive, 2, RowOrder::kQueryMinusKey),
              ElementsAre(4, 4, 4, 4, 3, 2, 1, 0, 0, 0, 0));
}

TEST(RowMap, ClipOfZeroIsOneRow) {
  EXPECT_THAT(clipped_row_map(kFiveToMinusFive, 0, RowOrder::kKeyMinusQuery), Each(0));
}

TEST(RowMap, DebertaClipsAsymmetrically) {
  EXPECT_THAT(
      row_map(kFiveToMinusFive, {.rows = 6, .zero_distance = 3, .order = RowOrder::kQueryMinusKey}),
      ElementsAre(5, 5, 5, 5, 4, 3, 2, 1, 0, 0, 0));
}

TEST(RowMap, OutsideTheTableLiesTheZeroRow) {
  EXPECT_THAT(row_map(kFiveToMinusFive, {.rows = 5, .zero_distance = 2, .outside = Outside::kZero}),
              ElementsAre(5, 5, 5, 0, 1, 2, 3, 4, 5, 5, 5));
  // The causal table has no rows for keys after the query.
  EXPECT_THAT(row_map(kFiveToMinusFive, {.rows = 4, .zero_distance = 3, .outside = Outside::kZero}),
              ElementsAre(4, 4, 0, 1, 2, 3, 4, 4, 4, 4, 4));
}

TEST(RowMap, RefusesADistanceWithoutARow) {
  const LinearRows table{.rows = 9, .zero_distance = 4, .outside = Outside::kRefuse};
  EXPECT_THROW(row_map(kFiveToMinusFive, table), Error);
  EXPECT_THAT(row_map({.farthest = 4, .count = 9}, table), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(RowMap, BucketsFollowTheDiagonals) {
  const T5Buckets t5({.buckets = 8, .max_distance = 20});
  EXPECT_THAT(row_map({.farthest = 7, .count = 10}, t5), ElementsAre(3, 2, 2, 2, 2, 2, 1, 0, 5, 6));
  const DebertaBuckets deberta({.buckets = 8, .max_positions = 16});
  EXPECT_THAT(row_map({.farthest = 6, .count = 8}, deberta),
              ElementsAre(13, 13, 12, 11, 10, 9, 8, 7));
}

// A shift of all positions keeps the distances, and a longer frame adds entries at both ends only.
TEST(RowMap, DependsOnDistanceAlone) {
  const T5Buckets t5({});
  const std::vector<int32_t> all = row_map({.farthest = 300, .count = 601}, t5);
  const std::vector<int32_t> part = row_map({.farthest = 100, .count = 150}, t5);
  for (size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], all[i + 200]);
}

TEST(RowMap, FarDistancesDoNotOverflow) {
  const int64_t far = int64_t{1} << 40;
  EXPECT_THAT(clipped_row_map({.farthest = far, .count = 3}, 7, RowOrder::kKeyMinusQuery), Each(0));
  EXPECT_THAT(clipped_row_map({.farthest = -far, .count = 3}, 7, RowOrder::kKeyMinusQuery),
              Each(14));
}

TEST(RowMap, NoDiagonalsNoRows) {
  EXPECT_THAT(clipped_row_map({}, 3, RowOrder::kKeyMinusQuery), IsEmpty());
}

TEST(RowMap, RefusesImpossibleOptions) {
  EXPECT_THROW(clipped_row_map({}, -1, RowOrder::kKeyMinusQuery), Error);
  EXPECT_THROW(clipped_row_map({}, int64_t{1} << 31, RowOrder::kKeyMinusQuery), Error);
  EXPECT_THROW(clipped_row_map({.farthest = 0, .count = -1}, 1, RowOrder::kKeyMinusQuery), Error);
  EXPECT_THROW(row_map({}, LinearRows{.rows = 0}), Error);
  EXPECT_THROW(row_map({}, LinearRows{.rows = 3, .zero_distance = 3}), Error);
  EXPECT_THROW(row_map({}, LinearRows{.rows = 3, .zero_distance = -1}), Error);
}

}  // namespace
}  // namespace sextant
