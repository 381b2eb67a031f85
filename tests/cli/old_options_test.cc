// Old names of options: each is the new one with a warning, and no help has it.
#include "sextant/cli/old_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/command.h"

namespace sextant::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kYarnConfig = SEXTANT_SOURCE_DIR "/examples/yarn.json";

std::string warning_of(const RenamedOption& option) {
  return std::string(option.command) + ": " + option.old_name + ": its name is " + option.name +
         " now\n";
}

TEST(OldOptions, AreTheNewOnesWithAWarning) {
  for (const RenamedOption& option : kRenamedOptions) {
    const std::string command = option.command, old_name = option.old_name, name = option.name;
    SCOPED_TRACE(command + " " + old_name);
    std::vector<std::string> start = {command};
    if (command == "plot") start.emplace_back("rope");
    const auto ended = [&](const std::vector<std::string>& more) {
      std::vector<std::string> words = start;
      words.insert(words.end(), more.begin(), more.end());
      return run(words);
    };
    EXPECT_THAT(ended({"--help"}).out, AllOf(HasSubstr(name + " "), Not(HasSubstr(old_name))));
    // Each is a value that is refused, or lacks another argument.
    const Ended expected = ended({name, "none"});
    EXPECT_EQ(expected.status, 2);
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{old_name, "none"}, {old_name + "=none"}}) {
      const Ended old = ended(words);
      EXPECT_EQ(old.status, expected.status);
      EXPECT_EQ(old.err, warning_of(option) + expected.err);
    }
    const Ended both = ended({old_name, "none", name + "=none"});
    EXPECT_EQ(both.status, 2);
    EXPECT_THAT(both.err, HasSubstr(command + ": " + old_name + ": expected only " + name +
                                    ", its name now, but got both\n"));
  }
}

TEST(OldOptions, DoTheWorkOfTheNewOnes) {
  const Ended now = run({"convert", kYarnConfig, "--as", "vllm"});
  const Ended before = run({"convert", kYarnConfig, "--to", "vllm"});
  EXPECT_EQ(now.status, 0) << now.err;
  EXPECT_THAT(now.err, Not(HasSubstr("--to")));
  EXPECT_EQ(before.out, now.out);
  const TemporaryFolder folder;
  EXPECT_EQ(run({"explain", kYarnConfig, "--plot", (folder / "charts").string()}).status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "charts/wavelengths.svg"));
}

// Words after -- are no options.
TEST(OldOptions, ArePathsAfterTwoDashes) {
  const Ended ended = run({"train", "--out", "none", "--", "--to"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("--to"), Not(HasSubstr("its name is"))));
}

}  // namespace
}  // namespace sextant::cli
