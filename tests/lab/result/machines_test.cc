#include "sextant/lab/result/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sextant::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Machines, AreCountedInTheirOrder) {
  const std::vector<Machine> machines =
      machines_of(std::vector<std::string>{"Zen 5", "Ice Lake", "", "Zen 5"});
  ASSERT_EQ(machines.size(), 2);
  EXPECT_EQ(machines[0].name, "Zen 5");
  EXPECT_EQ(machines[0].arms, 2);
  EXPECT_EQ(machines[1].arms, 1);
}

TEST(Machines, AreSaidOnlyIfTheyDiffer) {
  EXPECT_THAT(unlike_machines_text(machines_of(std::vector<std::string>{"a", "a", ""})), IsEmpty());
  EXPECT_THAT(unlike_machines_text(machines_of(std::vector<std::string>{"a", "b", "a"})),
              AllOf(HasSubstr("unlike machines"), HasSubstr("2 arms  a"), HasSubstr("1 arm   b")));
}

}  // namespace
}  // namespace sextant::lab
