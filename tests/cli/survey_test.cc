#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/small_survey.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Trainings of 300 steps, to be interrupted. `kSaved` writes a checkpoint at each step, so that a
// test that polls every few milliseconds finds the training in its first half on any machine.
const std::vector<std::string> kLong{
    "--bytes", "76800", "--jobs", "2", "--methods", "rope,transformer-xl:memory=48,window"};
const std::vector<std::string> kSaved = [] {
  std::vector<std::string> words = kLong;
  words.insert(words.end(), {"--save-seconds", "0"});
  return words;
}();

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  const std::string list = read_text("/proc/" + std::to_string(parent) + "/task/" +
                                     std::to_string(parent) + "/children");
  for (size_t begin = 0; begin < list.size(); begin = list.find(' ', begin) + 1) {
    children.push_back(std::stoi(list.substr(begin)));
  }
  return children;
}

// The step of an arm's newest checkpoint, or 0 without one.
int64_t saved_step(const fs::path& arm) {
  constexpr std::string_view kPrefix = "checkpoint-";
  int64_t step = 0;
  if (!fs::exists(arm)) return step;
  for (const auto& entry : fs::directory_iterator(arm)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(".sxt")) continue;
    step = std::max(step, int64_t{std::stoll(name.substr(kPrefix.size()))});
  }
  return step;
}

int count_of(const std::string& words, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(Survey, EndsWithATableChartsAndAReport) {
  const Ended first = survey("out");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("Trained at 32 bytes"), HasSubstr("\nrope "),
                               HasSubstr("\nalibi "), HasSubstr("\nwindow ")));
  for (const char* file :
       {"manifest.json", "results.json", "results.csv", "report.html", "sliding-by-length.svg",
        "loss-by-length.svg", "loss-by-position.svg", "training.svg"}) {
    EXPECT_GT(fs::file_size(folder_ / "out" / file), 100) << file;
  }

  // A second run does nothing, prints the same, and leaves the same files.
  const auto written = fs::last_write_time(folder_ / "out/report.html");
  const Ended again = survey("out");
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.out, first.out);
  EXPECT_THAT(again.err, Not(HasSubstr("arms to do")));
  EXPECT_EQ(fs::last_write_time(folder_ / "out/report.html"), written);

  // Another folder gets the same results.
  EXPECT_EQ(survey("elsewhere").out, first.out);

  // With another method, only the new arm is trained.
  const Ended more = survey("out", {"--methods", "rope,none"});
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.err, AllOf(HasSubstr("1 of 2 arms to do"), HasSubstr("none-0 done")));
}

TEST_F(Survey, AsksForPairsAndStretches) {
  // An arm is a process, so that all stretches of two seeds would take minutes: they are planned.
  EXPECT_THAT(survey("out", {"--dry-run", "--methods", "alibi,stretches"}).out,
              AllOf(HasSubstr("\n  rerope-0 "), HasSubstr("\n  chunk-0 ")));
  const std::vector<std::string> asked{
      "--retrieval-steps", "10", "--methods", "alibi,pi,yarn-8-turns",
      "--seeds",           "2",  "--jobs",    "2"};
  const Ended ended = survey("out", asked);
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("Retrieval, trained at 16 tokens"),
                    HasSubstr("How to stretch the trained rope"), HasSubstr("\nyarn-8-turns "),
                    HasSubstr("half of the 95 % interval over seeds"), Not(HasSubstr("nan"))));
  for (const char* file :
       {"summary.csv", "retrieval-by-distance.svg", "retrieval-by-length.svg",
        "stretches-by-length.svg", "stretches-by-position.svg",
        "stretches-retrieval-by-distance.svg", "arms/rope-pairs-1/model.safetensors"}) {
    EXPECT_TRUE(fs::exists(folder_ / "out" / file)) << file;
  }
  EXPECT_FALSE(fs::exists(folder_ / "out/arms/pi-0/model.safetensors")) << "it trains nothing";
}

TEST_F(Survey, TunesWhatItReads) {
  const Ended ended = survey("out", {"--methods", "pi", "--tune", "5"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("\npi "), HasSubstr("\npi:tune=5 "), HasSubstr("\nrope:tune=5 ")));
  EXPECT_TRUE(fs::exists(folder_ / "out/arms/pi:tune=5-0/model.safetensors"));
}

TEST_F(Survey, DropsChannelsOfMethodsThatAddSome) {
  const std::vector<std::string> asked{"--methods", "rope,binary", "--drop-channels", "1,4"};
  const Ended ended = survey("out", asked);
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("Channels of the added position vector set to zero"),
                    HasSubstr("\nbinary:drop_channels=1 "), HasSubstr("\nbinary:drop_channels=4 "),
                    Not(HasSubstr("rope:drop_channels"))));
  EXPECT_FALSE(fs::exists(folder_ / "out/arms/binary:drop_channels=1-0/model.safetensors"));
  const Ended again = survey("out", asked);
  EXPECT_EQ(again.out, ended.out);
  EXPECT_THAT(again.err, Not(HasSubstr("arms to do")));
}

TEST_F(Survey, TakesArmsFromAFile) {
  write_text(folder_ / "arms.json",
             R"({"arms": ["none", {"label": "far", "method": "rope", "options": {"base": 1e6}}],
                 "settings": {"training": {"bytes": 5120}}})");
  std::vector<std::string> words{"survey", "--smoke", "--retrieval-steps", "0", "--share", "0.2"};
  words.insert(words.end(),
               {"--text", (folder_ / "text").string(), "--out", (folder_ / "out").string(),
                "--arms", (folder_ / "arms.json").string()});
  const Ended ended = run(words);
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("\nnone "), HasSubstr("\nfar ")));
  EXPECT_THAT(read_text(folder_ / "out/manifest.json"), HasSubstr("\"bytes\": 5120"));
}

// A survey of a few steps has learned nothing, and says so.
TEST_F(Survey, GivesNoVerdictOnWhatWasNotLearned) {
  const Ended ended = survey("out", {"--methods", "none,alibi,window", "--bytes", "1024"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("  not learned\n"), Not(HasSubstr("  holds")),
                               Not(HasSubstr("  breaks"))));
  EXPECT_THAT(read_text(folder_ / "out/report.html"), Not(HasSubstr("<td class=\"good")));
  EXPECT_THAT(read_text(folder_ / "out/results.json"),
              AllOf(HasSubstr("\"verdict\": \"not learned\""), HasSubstr("\"name\": \"none\"")));
}

// The plan constructs every arm.
TEST_F(Survey, PlansTheArmsOfTheOpenQuestions) {
  std::vector<std::string> asked = words("out", {"--dry-run", "--methods", "unused"});
  const auto methods = std::ranges::find(asked, "--methods");
  *methods = "--claims";
  *(methods + 1) = "open";
  const Ended plan = run(asked);
  EXPECT_EQ(plan.status, 0) << plan.err;
  for (const char* arm : {"shaw:clip=64-0", "pi:tune=40-0", "rope:weights=rope:tune=40-0",
                          "sinusoidal:base=1e6-0", "tener:scaled=true-0", "none-0"}) {
    EXPECT_THAT(plan.out, HasSubstr(std::string("  ") + arm + " ")) << arm;
  }
  *(methods + 1) = "closed";
  EXPECT_EQ(run(asked).status, 2);
  asked.insert(asked.end(), {"--methods", "rope"});
  *(methods + 1) = "open";
  EXPECT_THAT(run(asked).err, HasSubstr("--methods excludes --claims"));
}

TEST_F(Survey, ListsWhatThereIs) {
  const Ended ended = run({"survey", "--list"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("  alibi "), HasSubstr("\"base\":10000.0"),
                               HasSubstr(" yarn-8-turns "), HasSubstr("Without --methods")));
}

TEST_F(Survey, OtherSettingsInTheSameFolderAreRefused) {
  survey("out", {"--methods", "none"});
  const Ended other = survey("out", {"--methods", "none", "--learning-rate", "0.01"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err,
              AllOf(HasSubstr("holds a survey with other settings"),
                    HasSubstr("settings.training.learning_rate: 0.004 there, 0.01 asked")));
  write_text(folder_ / "text/more.txt", "another text");
  EXPECT_THAT(survey("out", {"--methods", "none"}).err, HasSubstr("text.documents: 40 there, 41"));
}

TEST_F(Survey, KilledAndStartedAgainGivesTheSameTable) {
  const Ended whole = survey("whole", kLong);
  ASSERT_EQ(whole.status, 0) << whole.err;
  const fs::path rope = folder_ / "killed/arms/rope-0";
  const fs::path xl = folder_ / "killed/arms/transformer-xl:memory=48-0";
  for (int kill = 0; kill < 3; ++kill) {
    const int64_t rope_began = saved_step(rope), xl_began = saved_step(xl);
    Running running(words("killed", kSaved), folder_.path());
    const auto both_went_on = [&] {
      return saved_step(rope) > rope_began + 5 && saved_step(xl) > xl_began + 5;
    };
    while (!running.is_over() && !both_went_on()) wait_a_moment();
    ASSERT_FALSE(running.is_over()) << running.err();
    const std::vector<pid_t> workers = children_of(running.process());
    ::kill(running.process(), SIGKILL);
    running.wait();
    // No worker is left running.
    for (const pid_t worker : workers) {
      while (::kill(worker, 0) == 0) wait_a_moment();
    }
  }
  const Ended resumed = survey("killed", kLong);
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(count_of("going on at step", read_text(rope / "log.txt")), 3);
  EXPECT_EQ(count_of("going on at step", read_text(xl / "log.txt")), 3);
  EXPECT_EQ(resumed.out, whole.out);
  EXPECT_EQ(read_text(folder_ / "killed/results.csv"), read_text(folder_ / "whole/results.csv"));
  for (const fs::path& arm : {rope, xl}) {
    EXPECT_EQ(read_text(arm / "model.safetensors"),
              read_text(folder_ / "whole/arms" / arm.filename() / "model.safetensors"));
  }
}

TEST_F(Survey, CtrlCSavesAndSaysHowToGoOn) {
  Running running(words("out", kSaved), folder_.path(),
                  [] { ::setenv("SEXTANT_TYPED", "./run --out 'my survey'", /*overwrite=*/1); });
  const fs::path rope = folder_ / "out/arms/rope-0";
  while (!running.is_over() && saved_step(rope) == 0) wait_a_moment();
  ::kill(-running.process(), SIGINT);  // to the whole group, as a terminal does
  EXPECT_EQ(running.wait(), 130);
  EXPECT_THAT(running.err(),
              AllOf(HasSubstr("stopping"), HasSubstr("stopped: 0 of 3 arms are done. "
                                                     "To go on:\n  ./run --out 'my survey'\n")));
  const fs::path left = folder_ / "out/results.csv.sextant-aB3dE9";  // as a killed one leaves it
  write_text(left, "");
  write_text(rope / left.filename(), "");
  const Ended resumed = survey("out", kLong);
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(count_of("going on at step", read_text(rope / "log.txt")), 1);
  EXPECT_FALSE(fs::exists(left) || fs::exists(rope / left.filename()));
}

TEST_F(Survey, AWorkerThatDiesIsNamedAndTheOthersGoOn) {
  Running running(words("out", {"--methods", "alibi,rope,window", "--jobs", "1"}), folder_.path());
  while (!running.is_over() && children_of(running.process()).empty()) wait_a_moment();
  const std::vector<pid_t> workers = children_of(running.process());
  ASSERT_EQ(workers.size(), 1);
  ::kill(workers[0], SIGKILL);
  EXPECT_EQ(running.wait(), 1);
  EXPECT_THAT(running.err(), HasSubstr("failed: alibi-0: signal 9 (Killed)"));
  EXPECT_THAT(running.out(),
              AllOf(HasSubstr("\nrope "), HasSubstr("\nwindow "), Not(HasSubstr("alibi"))));
  EXPECT_EQ(survey("out", {"--methods", "alibi,rope,window"}).status, 0);
}

TEST_F(Survey, OnlyOneAtATimeInOneFolder) {
  Running running(words("out"), folder_.path());
  while (!running.is_over() && !fs::exists(folder_ / "out/manifest.json")) wait_a_moment();
  ::kill(running.process(), SIGSTOP);  // keeps it running until the test ends it
  const Ended second = survey("out");
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(second.err, HasSubstr("another one is at work in"));
  ::kill(running.process(), SIGKILL);
  running.wait();
}

TEST_F(Survey, DryRunWritesNothing) {
  const Ended plan = survey("out", {"--dry-run", "--seeds", "2"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("6 of 6 arms to do"), HasSubstr("rope-1"),
                              HasSubstr("test with the weights of rope-1"),
                              ContainsRegex("About [0-9]+ s and [0-9]+ MB of memory")));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

struct Wrong {
  std::vector<std::string> words;
  int status;
  const char* says;
};

TEST_F(Survey, SaysWhatIsWrong) {
  const std::vector<Wrong> cases{
      {{"--methods", "rop"}, 1, "rop"},
      {{"--methods", "rope:bass=1"}, 1, "bass"},
      {{"--methods", "rope:base=minus"}, 1, "base"},
      {{"--methods", "complex:phase=word:vocabulary=64"},
       1,
       "complex: vocabulary: expected at least the model's 256, but got 64"},
      {{"--methods", "sinusoidal", "--memory", "32"},
       1,
       "sinusoidal:memory=32: memory: expected 0, as sinusoidal goes by absolute positions"},
      {{"--methods", "rope,alibi", "--drop-channels", "2"},
       1,
       "drop_channels: expected a method that adds a vector to the input (binary, clock, "},
      {{"--methods", "sinusoidal", "--drop-channels", "33"},
       1,
       "sinusoidal:drop_channels=33: drop_channels: expected 1 to 32"},
      {{"--methods", "rope", "--drop-channels", "0"}, 2, "--drop-channels"},
      {{"--text", "/no/such/file"}, 1, "text: read /no/such/file: cannot open it: No such file"},
      {{"--text", SEXTANT_COMMAND}, 1, "sextant: expected text in UTF-8, but got a file of"},
      {{"--lengths", "32,100"}, 1, "expected divisors of the longest, 100, but got 32"},
      {{"--heads", "5"}, 1, "width: expected a multiple of heads (5), but got 32"},
      {{"--norm", "batchnorm"}, 1, "expected one of layernorm, rmsnorm, but got batchnorm"},
      {{"--blocks", "10000"}, 1, "expected 10000 blocks of 257 bytes"},
      {{"--bytes", "many"}, 2, "--bytes"},
      {{"--no-such-option"}, 2, "--no-such-option"},
      {{"--jobs", "0"}, 2, "--jobs"},
      {{"--save-seconds", "-1"}, 2, "--save-seconds"}};
  for (const Wrong& wrong : cases) {
    const Ended ended = survey("out", wrong.words);
    EXPECT_EQ(ended.status, wrong.status) << wrong.says;
    EXPECT_THAT(ended.err, HasSubstr(wrong.says));
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_FALSE(fs::exists(folder_ / "out")) << wrong.says;
  }
}

TEST_F(Survey, ADeviceThatIsNotThereEndsItBeforeAnyWork) {
  ::setenv("CUDA_VISIBLE_DEVICES", "", /*overwrite=*/1);  // as on a machine without a GPU
  const auto error = [&](const char* device) {
    const Ended ended = survey("out", {"--device", device});
    EXPECT_EQ(ended.status, 1);
    EXPECT_FALSE(fs::exists(folder_ / "out"));
    return ended.err;
  };
  EXPECT_THAT(error("mps"), HasSubstr("device: expected cpu or cuda, but got mps"));
  EXPECT_THAT(error("cuda:x"), HasSubstr("expected the number of a GPU after cuda:"));
  EXPECT_THAT(error("cuda"), HasSubstr("device: expected cpu, as "));
  // Arms that run elsewhere are prepared without the device.
  ASSERT_EQ(survey("many", {"--device", "cuda", "--prepare"}).status, 0);
  const std::string arm = (folder_ / "many/arms/rope-0").string();
  EXPECT_THAT(run({"arm", arm}).err, HasSubstr("device: expected cpu, as "));
  EXPECT_EQ(run({"arm", arm, "--device", "cpu"}).status, 0);
}

TEST(Command, SaysWhatItIs) {
  EXPECT_THAT(run({"survey", "--help"}).out, HasSubstr("--methods"));
  const Ended nothing = run({});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.err, HasSubstr("A subcommand is required"));
  const Ended unknown = run({"no-such-command"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err,
              HasSubstr("no-such-command: expected one of explain convert doctor plot survey"));
}

}  // namespace
}  // namespace sextant::cli
