#include "sextant/lab/run/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <thread>

#include "sextant/base/error.h"
#include "sextant/files/write_file.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

Ending end_of(Worker& worker, std::string& why) {
  while (worker.read()) {
  }
  return worker.finish(why);
}

TEST(Worker, TellsItsLastReport) {
  const TemporaryFolder folder;
  Worker worker(shell("echo '1 4 first step' >&3; printf '2.5 4 second' >&3; echo ' step' >&3"),
                folder / "log.txt");
  std::string why;
  EXPECT_EQ(end_of(worker, why), Ending::kDone);
  EXPECT_EQ(worker.report().done, 2.5);
  EXPECT_EQ(worker.report().total, 4);
  EXPECT_EQ(worker.report().text, "second step");
}

TEST(Worker, ReportsSurviveTheirLine) {
  const TemporaryFolder folder;
  ProgressReport report{.done = 0.1, .total = 1e9, .text = "step 1/2 loss 3.00"};
  Worker worker(shell("printf '%s' '" + line_of(report) + "' >&3"), folder / "log.txt");
  std::string why;
  end_of(worker, why);
  EXPECT_EQ(worker.report().done, 0.1);
  EXPECT_EQ(worker.report().text, report.text);
}

TEST(Worker, IgnoresLinesThatAreNoReports) {
  const TemporaryFolder folder;
  Worker worker(shell("echo '1 4 good' >&3; echo nonsense >&3; echo '7' >&3; echo >&3"),
                folder / "log.txt");
  std::string why;
  EXPECT_EQ(end_of(worker, why), Ending::kDone);
  EXPECT_EQ(worker.report().text, "good");
}

TEST(Worker, SaysHowItEnded) {
  const TemporaryFolder folder;
  std::string why;
  Worker fails(shell("exit 3"), folder / "log.txt");
  EXPECT_EQ(end_of(fails, why), Ending::kFailed);
  EXPECT_EQ(why, "exit status 3");
  Worker crashes(shell("kill -SEGV $$"), folder / "log.txt");
  EXPECT_EQ(end_of(crashes, why), Ending::kFailed);
  EXPECT_EQ(why, "signal 11 (Segmentation fault)");
  Worker stops(shell("exit 75"), folder / "log.txt");
  EXPECT_EQ(end_of(stops, why), Ending::kStopped);
  Worker missing({"/no/such/program"}, folder / "log.txt");
  EXPECT_EQ(end_of(missing, why), Ending::kFailed);
  EXPECT_EQ(why, "exit status 127");
}

TEST(Worker, SaysWhyItCannotWrite) {
  const TemporaryFolder folder;
  std::string why;
  const std::string line = line_of_failure("write a: cannot write:\nfull");
  Worker full(shell("printf '%s' '" + line + "' >&3; exit 74"), folder / "log.txt");
  EXPECT_EQ(end_of(full, why), Ending::kCannotWrite);
  EXPECT_EQ(full.said(), "write a: cannot write: full");
  Worker silent(shell("exit 74"), folder / "log.txt");
  EXPECT_EQ(end_of(silent, why), Ending::kFailed) << "whatever it was, it was not our word";
  EXPECT_THROW(Worker(shell("true"), folder / "nowhere" / "log.txt"), CannotWrite);
}

TEST(Worker, AddsToItsLogAndReadsNothing) {
  const TemporaryFolder folder;
  write_text(folder / "log.txt", "before\n");
  Worker worker(shell("echo out; echo err >&2; cat"), folder / "log.txt");
  std::string why;
  EXPECT_EQ(end_of(worker, why), Ending::kDone);
  EXPECT_EQ(read_text(folder / "log.txt"), "before\nout\nerr\n");
  EXPECT_THROW(Worker(shell("true"), folder / "missing/log.txt"), Error);
}

TEST(Worker, IsStoppedBySigtermAndNotByTheSignalsOfATerminal) {
  const TemporaryFolder folder;
  Worker worker(shell("trap 'exit 75' TERM; echo '0 1 ready' >&3; while :; do sleep 0.01; done"),
                folder / "log.txt");
  worker.read();
  worker.send(SIGINT);
  worker.send(SIGHUP);
  worker.send(SIGTERM);
  std::string why;
  EXPECT_EQ(end_of(worker, why), Ending::kStopped);
}

bool is_alive(pid_t process) {
  const std::string stat = read_text("/proc/" + std::to_string(process) + "/stat");
  return !stat.empty() && stat.find(") Z ") == std::string::npos;
}

// The process id in the file, once it is written.
pid_t number_of_field(const std::filesystem::path& path) {
  pid_t process = 0;
  while (process == 0) {
    const std::string text = read_text(path);
    if (text.ends_with('\n')) std::from_chars(text.data(), text.data() + text.size(), process);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return process;
}

TEST(Worker, DiesWithItsParent) {
  const TemporaryFolder folder;
  const pid_t parent = ::fork();
  if (parent == 0) {
    Worker worker(shell("echo $$ > " + (folder / "number").string() + "; exec sleep 1000"),
                  folder / "log.txt");
    ::pause();
  }
  const pid_t worker = number_of_field(folder / "number");
  EXPECT_TRUE(is_alive(worker));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  while (is_alive(worker)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(Worker, DiesWithItsObject) {
  const TemporaryFolder folder;
  pid_t process = 0;
  {
    Worker worker(shell("echo $$ > " + (folder / "number").string() + "; exec sleep 1000"),
                  folder / "log.txt");
    process = number_of_field(folder / "number");
  }
  EXPECT_FALSE(is_alive(process));
}

}  // namespace
}  // namespace sextant::lab
