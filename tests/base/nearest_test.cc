// Suggestions for mistyped names: the nearest first, and few of many.
#include "sextant/base/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sextant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kNames = {"alibi", "kerple-log",     "kerple-power", "rope",
                                         "t5",    "transformer-xl", "xpos"};

TEST(Nearest, HasTheFewestEditsFirst) {
  EXPECT_EQ(nearest("alibbi", kNames).front(), "alibi");
  EXPECT_EQ(nearest("ROPES", kNames).front(), "rope") << "in any case of letters";
  EXPECT_EQ(nearest("t6", kNames).front(), "t5");
  EXPECT_EQ(nearest(std::string(1 << 20, 'x'), kNames).size(), 3) << "long words take no time";
}

TEST(Nearest, NamesThatContainTheWordAreBeforeOthers) {
  EXPECT_THAT(nearest("kerple", kNames), ElementsAre("kerple-log", "kerple-power", "rope"));
  EXPECT_EQ(nearest("xl", kNames).front(), "t5") << "short words are in names by chance";
}

TEST(Nearest, TextHasThreeOfMany) {
  EXPECT_EQ(nearest_text("alibis", kNames), "alibi, xpos, rope (the nearest of 7)");
  EXPECT_THAT(nearest("alibi", {}), IsEmpty());
}

}  // namespace
}  // namespace sextant
