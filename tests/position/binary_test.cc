#include "sextant/position/binary.h"

#include <gmock/gmock.h>

#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<double> row(int64_t bits, int64_t position,
                        BinaryLevels levels = BinaryLevels::kZeroOne) {
  return binary_rows(bits, levels, std::vector{position});
}

TEST(Binary, TheFastestBitComesFirst) {
  EXPECT_THAT(row(4, 6), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(row(4, 8), ElementsAre(0, 0, 0, 1));
  // From golden/relative/clock_binary, position 100000.
  EXPECT_THAT(row(8, 100000), ElementsAre(0, 0, 0, 0, 0, 1, 0, 1));
  EXPECT_THAT(row(8, 100000, BinaryLevels::kMinusOneOne),
              ElementsAre(-1, -1, -1, -1, -1, 1, -1, 1));
}

TEST(Binary, RepeatsAfterAllNumbers) {
  for (int64_t position = -20; position < 20; ++position) {
    EXPECT_THAT(row(4, position + 16), ElementsAreArray(row(4, position)));
  }
}

TEST(Binary, RefusesImpossibleOptions) {
  EXPECT_THROW(row(0, 1), Error);
  EXPECT_THROW(row(64, 1), Error);
}

}  // namespace
}  // namespace sextant
