// The command itself: its version, and arguments that name no subcommand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/build_info.h"
#include "sextant/version.h"
#include "tests/cli/command.h"

namespace sextant::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Command, SaysWhichVersionItIs) {
  const std::string project = read_text(SEXTANT_SOURCE_DIR "/CMakeLists.txt");
  EXPECT_THAT(project, HasSubstr("project(sextant VERSION " + std::string(version()) + " "));
  EXPECT_THAT(std::string(commit()), MatchesRegex("unknown|[0-9a-f]{12}"));

  const Ended ended = run({"--version"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, StartsWith("sextant " + std::string(version()) + " (commit " +
                                    std::string(commit()) + ")\nbackends: "));
  for (const Backend* backend : backends()) {
    const std::string here = why_not(*backend).empty() ? "(,|\n)" : " \\(not here\\)";
    EXPECT_THAT(ended.out, ContainsRegex("backends: [^\n]*" + std::string(backend->name) + here));
  }
  EXPECT_THAT(ended.out, ContainsRegex("\nSIMD: [A-Z][A-Z0-9_]+\nlibtorch: [^\n]+\n$"));
#ifdef SEXTANT_HAS_LABORATORY
  EXPECT_NE(libtorch(), "none");
#else
  EXPECT_EQ(libtorch(), "none");
#endif
}

TEST(Command, UsesTheInstructionsThatAreNamed) {
  ::setenv("SEXTANT_SIMD", "none", 1);
  const Ended ended = run({"--version"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, ContainsRegex("SEXTANT_SIMD: expected one of [A-Z0-9_, ]+, but got "
                                       "\"none\""));
  const size_t last = ended.err.rfind(", but"), before = ended.err.find_last_of(" ", last - 1);
  const std::string least = ended.err.substr(before + 1, last - before - 1);
  ::setenv("SEXTANT_SIMD", least.c_str(), 1);
  EXPECT_THAT(run({"--version"}).out, HasSubstr("\nSIMD: " + least + "\n"));
  ::unsetenv("SEXTANT_SIMD");
}

// The survey looks for the text before it does anything else.
TEST(Command, OptionsWithoutACommandAreTheSurveys) {
  const Ended ended = run({"--methods", "rope,alibi", "--text", "/no/such/file"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, HasSubstr("text: read /no/such/file: cannot open it"));
  EXPECT_EQ(ended.err, run({"survey", "--methods", "rope,alibi", "--text", "/no/such/file"}).err);

  const Ended unknown = run({"--no-such-option"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--no-such-option"));
}

TEST(Command, NothingForeignMovesTheCursor) {
  const TemporaryFolder folder;
  const std::string arms = (folder / "arms.json").string();
  write_text(arms, R"({"arms": [{"method": "rope", "label": "a\u001b[2J\nsextant: done"}]})");
  const std::string foreign = "x\x1b[2J\nsextant: done";
  const std::vector<std::vector<std::string>> all = {
      {foreign},
      {"survey", "--arms", arms, "--dry-run"},
      {"survey", "--text", foreign},
      {"survey", "--seeds", foreign},
      {"survey", "--methods", "rope:base=" + foreign, "--dry-run"},
      {"explain", foreign},
      {"convert", foreign, "--as", foreign},
      {"doctor", foreign + ".gguf"},
      {"plot", foreign},
      {"retrieve", foreign},
      {"claims", foreign},
      {"train", foreign, "--out", foreign},
      {"arm", foreign}};
  for (const std::vector<std::string>& words : all) {
    const Ended ended = run(words);
    EXPECT_NE(ended.status, 0) << words[0];
    EXPECT_THAT(ended.err, HasSubstr("u001b[2J")) << words[0];
    for (const char* hidden : {"\x1b", "\nsextant: done"}) {
      EXPECT_THAT("\n" + ended.out + ended.err, Not(HasSubstr(hidden))) << words[0];
    }
  }
}

TEST(Command, HelpIsItsOwnAndNotTheSurveys) {
  for (const char* word : {"--help", "-h"}) {
    const Ended help = run({word});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.out, AllOf(HasSubstr("\n  explain "), HasSubstr("\n  methods "),
                                HasSubstr("Options without a command are those of survey.")));
  }
}

}  // namespace
}  // namespace sextant::cli
