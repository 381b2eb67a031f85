// Arms that several processes run in one folder: --prepare, sextant arm, --collect and --launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/small_survey.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kOfArms = "--collect";

std::vector<std::string> lines_of(const fs::path& path) {
  std::istringstream text(read_text(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// The survey that all tests divide, in one command.
struct Whole {
  Whole() {
    write_small_text(folder / "text");
    ended = run(survey_words(folder, "one", {"--jobs", "1"}));
  }
  TemporaryFolder folder;
  Ended ended;
};

const Whole& whole() {
  static const Whole whole;
  return whole;
}

class ManyMachines : public Survey {
 protected:
  void SetUp() override { ASSERT_EQ(whole().ended.status, 0) << whole().ended.err; }

  // The command for the arms of a list in a folder.
  std::vector<std::string> arms(const std::string& out, const std::string& list,
                                std::vector<std::string> words = {"arm"}) const {
    for (const std::string& arm : lines_of(folder_ / out / list)) {
      words.push_back((folder_ / out / arm).string());
    }
    return words;
  }

  void expect_same_weights(const std::string& out, const std::string& arm) const {
    const fs::path file = fs::path("arms") / arm / "model.safetensors";
    ASSERT_TRUE(fs::exists(folder_ / out / file));
    EXPECT_EQ(read_text(folder_ / out / file), read_text(whole().folder / "one" / file));
  }
};

TEST_F(ManyMachines, PreparedArmsGiveTheTableOfOneProcess) {
  const Ended prepared = survey("many", {"--prepare"});
  EXPECT_EQ(prepared.status, 0) << prepared.err;
  EXPECT_THAT(prepared.out, AllOf(HasSubstr("3 arms are prepared: 2 in "),
                                  HasSubstr("sextant survey " + kOfArms)));
  EXPECT_THAT(lines_of(folder_ / "many/arms.txt"),
              ::testing::UnorderedElementsAre("arms/rope-0", "arms/alibi-0"));
  EXPECT_THAT(lines_of(folder_ / "many/arms-second.txt"), ::testing::ElementsAre("arms/window-0"));

  const std::vector<std::string> summary{"survey", kOfArms, (folder_ / "many").string()};
  const Ended early = run(summary);
  EXPECT_EQ(early.status, 75);
  EXPECT_THAT(early.err, HasSubstr("3 of 3 arms are not done: alibi-0, rope-0, window-0"));

  const Ended without = run(arms("many", "arms-second.txt"));
  EXPECT_EQ(without.status, 1);
  EXPECT_THAT(without.err, HasSubstr("window-0: needs the weights of rope-0, which is not done"));

  Running waiting(arms("many", "arms-second.txt", {"arm", "--wait"}), folder_.path());
  const Ended first = run(arms("many", "arms.txt"));
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(waiting.wait(), 0) << waiting.err();
  const Ended collected = run(summary);
  EXPECT_EQ(collected.status, 0) << collected.err;
  EXPECT_EQ(collected.out, whole().ended.out);
  EXPECT_TRUE(fs::exists(folder_ / "many/report.html"));
  EXPECT_EQ(run(arms("many", "arms.txt")).status, 0);  // all are done
}

TEST_F(ManyMachines, OneWorkerAtATimeIsAtAnArm) {
  survey("many", {"--prepare"});
  const fs::path arm = folder_ / "many/arms/rope-0";
  const std::vector<std::string> words{"arm", "--save-seconds", "0", arm.string()};
  const TemporaryFolder outputs;
  Running first(words, outputs.path());
  while (!first.is_over() && !fs::exists(arm / "lock")) wait_a_moment();
  const Ended second = run(words);
  EXPECT_EQ(second.status, 75);
  EXPECT_THAT(second.err, HasSubstr("works on it"));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_FALSE(fs::exists(arm / "lock"));
  expect_same_weights("many", "rope-0");
}

TEST_F(ManyMachines, AKilledWorkerIsReplaced) {
  survey("many", {"--prepare"});
  const fs::path arm = folder_ / "many/arms/rope-0";
  const std::vector<std::string> words{"arm", "--save-seconds", "0", arm.string()};
  const TemporaryFolder outputs;
  Running killed(words, outputs.path());
  const auto has_checkpoint = [&] {
    for (const auto& entry : fs::directory_iterator(arm)) {
      if (entry.path().extension() == ".sxt") return true;
    }
    return false;
  };
  while (!killed.is_over() && !has_checkpoint()) wait_a_moment();
  ::kill(killed.process(), SIGKILL);
  EXPECT_EQ(killed.wait(), -SIGKILL);
  Ended again = run(words);
  // The worker under the killed command may end a moment later.
  for (int n = 0; n < 100 && again.status == 75; ++n) again = run(words);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(read_text(arm / "log.txt"), HasSubstr("going on at step"));
  expect_same_weights("many", "rope-0");
}

TEST_F(ManyMachines, AFileStopsAnArm) {
  survey("many", {"--prepare", "--bytes", "256000"});
  const fs::path arm = folder_ / "many/arms/rope-0";
  const std::vector<std::string> words{"arm", arm.string()};
  const TemporaryFolder outputs;
  Running stopped(words, outputs.path());
  while (!stopped.is_over() && !fs::exists(arm / "lock")) wait_a_moment();
  std::ofstream(arm / "stop") << "stop\n";
  EXPECT_EQ(stopped.wait(), 75) << stopped.err();
  EXPECT_THAT(stopped.err(), HasSubstr("rope-0: it was stopped; what it has done is kept"));
  EXPECT_FALSE(fs::exists(arm / "stop"));
  EXPECT_EQ(run(words).status, 0);
}

TEST_F(ManyMachines, ALauncherRunsTheArms) {
  const Ended launched = survey("many", {"--launch", "env LAUNCHED=1", "--jobs", "2"});
  EXPECT_EQ(launched.status, 0) << launched.err;
  EXPECT_EQ(launched.out, whole().ended.out);
  EXPECT_THAT(launched.err, HasSubstr("window-0 done (3 of 3)"));
  expect_same_weights("many", "rope-0");
}

TEST_F(ManyMachines, ALauncherThatFailsIsNamed) {
  const Ended failed = survey("many", {"--launch", "false"});
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.err, HasSubstr("failed: rope-0: exit status 1"));
  const Ended missing = survey("many", {"--launch", "no-such-launcher"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("exit status 127"));
}

TEST_F(ManyMachines, SigtermStopsLaunchedArmsByTheirFolders) {
  Running running(words("many", {"--launch", "env LAUNCHED=1", "--jobs", "2", "--bytes", "256000",
                                 "--save-seconds", "0"}),
                  folder_.path());
  const fs::path arm = folder_ / "many/arms/rope-0";
  while (!running.is_over() && !fs::exists(arm / "lock")) wait_a_moment();
  ::kill(running.process(), SIGTERM);
  EXPECT_EQ(running.wait(), 128 + SIGTERM) << running.err();
  EXPECT_THAT(running.err(), HasSubstr("stopped: 0 of 3 arms are done. To go on:"));
  EXPECT_FALSE(fs::exists(arm / "lock"));
  EXPECT_FALSE(fs::exists(arm / "stop"));
}

TEST_F(ManyMachines, ACopiedFolderIsCollected) {
  survey("many", {"--prepare"});
  run(arms("many", "arms.txt"));
  run(arms("many", "arms-second.txt"));
  fs::rename(folder_ / "many", folder_ / "moved");
  const Ended collected = run({"survey", kOfArms, (folder_ / "moved").string()});
  EXPECT_EQ(collected.status, 0) << collected.err;
  EXPECT_EQ(collected.out, whole().ended.out);
}

TEST_F(ManyMachines, ARelativePathOfTextIsFoundFromAnyFolder) {
  std::vector<std::string> prepare = words("many", {"--prepare"});
  std::ranges::replace(prepare, (folder_ / "text").string(),
                       fs::proximate(folder_ / "text").string());
  EXPECT_EQ(run(prepare).status, 0);
  EXPECT_THAT(read_text(folder_ / "many/arms/rope-0/arm.json"), HasSubstr("\"../../../text\""));
  const Ended arm = run({"arm", (folder_ / "many/arms/rope-0").string()},
                        [] { fs::current_path(fs::temp_directory_path()); });
  EXPECT_EQ(arm.status, 0) << arm.err;
  expect_same_weights("many", "rope-0");
}

TEST_F(ManyMachines, SaysWhatIsWrong) {
  const Ended unprepared = run({"survey", kOfArms, (whole().folder / "one").string()});
  EXPECT_EQ(unprepared.status, 1);
  EXPECT_THAT(unprepared.err, HasSubstr(kOfArms + ": expected a folder that --prepare wrote"));
  survey("many", {"--prepare"});
  const Ended other = run({"extend", kOfArms, (folder_ / "many").string()});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("was prepared by sextant survey"));
  const Ended folder = run({"arm", (folder_ / "text").string()});
  EXPECT_EQ(folder.status, 1);
  EXPECT_THAT(folder.err, HasSubstr("arm: FOLDER: expected a folder of an arm, with arm.json"));
  EXPECT_THAT(run({"arm"}).err, HasSubstr("arm: FOLDER: expected folders of prepared arms"));
  const Ended quotes = survey("two", {"--launch", "ssh 'a b'"});
  EXPECT_EQ(quotes.status, 1);
  EXPECT_THAT(quotes.err, HasSubstr("--launch: expected words without quotes"));
  EXPECT_EQ(run({"survey", kOfArms}).status, 2);
  EXPECT_EQ(survey("two", {"--prepare", "--launch", "srun"}).status, 2);
}

}  // namespace
}  // namespace sextant::cli
