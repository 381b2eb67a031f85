#include "sextant/lab/run/arm_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "sextant/files/write_file.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

bool can_take(const fs::path& folder) {
  std::string owner;
  return ArmLock::take(folder, owner) != nullptr;
}

void set_age(const fs::path& file, std::chrono::seconds age) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const timespec then{.tv_sec = now - age.count(), .tv_nsec = 0};
  const timespec times[2] = {then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
}

TEST(ArmLock, IsHeldByOneAtATime) {
  const TemporaryFolder folder;
  std::string owner;
  {
    const auto lock = ArmLock::take(folder.path(), owner);
    ASSERT_NE(lock, nullptr);
    EXPECT_TRUE(lock->touch());
    EXPECT_EQ(ArmLock::take(folder.path(), owner), nullptr);
    EXPECT_THAT(owner, HasSubstr("process " + std::to_string(::getpid()) + " on host "));
  }
  EXPECT_FALSE(fs::exists(folder / kLockFile));
  EXPECT_TRUE(can_take(folder.path()));
}

TEST(ArmLock, IsTakenOverFromAKilledProcess) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    std::string owner;
    ::_exit(ArmLock::take(folder.path(), owner).release() == nullptr ? 1 : 0);  // no destructor
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(fs::exists(folder / kLockFile));
  std::string owner;
  const auto lock = ArmLock::take(folder.path(), owner);
  ASSERT_NE(lock, nullptr);
  EXPECT_TRUE(lock->touch());
}

TEST(ArmLock, OfAnotherMachineIsHeldAsLongAsItIsTouched) {
  const TemporaryFolder folder;
  std::ofstream(folder / kLockFile)
      << R"({"host": "n03", "process": 17, "started": "1", "machine": "another"})";
  std::string owner;
  EXPECT_EQ(ArmLock::take(folder.path(), owner), nullptr);
  EXPECT_EQ(owner, "process 17 on host n03");
  set_age(folder / kLockFile, kStaleSeconds - kTouchSeconds);
  EXPECT_FALSE(can_take(folder.path()));
  set_age(folder / kLockFile, kStaleSeconds + kTouchSeconds);
  EXPECT_TRUE(can_take(folder.path()));
}

TEST(ArmLock, OfADamagedFileGoesByItsAge) {
  const TemporaryFolder folder;
  std::ofstream(folder / kLockFile) << "";
  EXPECT_FALSE(can_take(folder.path()));
  set_age(folder / kLockFile, 2 * kStaleSeconds);
  EXPECT_TRUE(can_take(folder.path()));
}

TEST(ArmLock, IsLostToAWorkerThatTookItOver) {
  const TemporaryFolder folder;
  std::string owner;
  const auto lock = ArmLock::take(folder.path(), owner);
  std::ofstream(folder / kLockFile) << "of another worker";
  EXPECT_FALSE(lock->touch());
}

TEST(ArmLock, SaysThatTheFolderIsMissing) {
  std::string owner;
  EXPECT_THROW(ArmLock::take("/no/such/folder", owner), CannotWrite);
}

TEST(ArmLock, OfManyWorkersOneTakesADeadOne) {
  const TemporaryFolder folder;
  std::ofstream(folder / kLockFile) << "dead";
  set_age(folder / kLockFile, 2 * kStaleSeconds);
  std::vector<pid_t> workers;
  for (int n = 0; n < 8; ++n) {
    workers.push_back(::fork());
    if (workers.back() != 0) continue;
    std::string owner;
    const auto lock = ArmLock::take(folder.path(), owner);
    if (lock != nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ::_exit(lock != nullptr && lock->touch() ? 0 : 1);
  }
  int winners = 0;
  for (const pid_t worker : workers) {
    int status = 0;
    ::waitpid(worker, &status, 0);
    winners += status == 0 ? 1 : 0;
  }
  EXPECT_EQ(winners, 1);
}

TEST(Heartbeat, SeesARequestToStopOnce) {
  const TemporaryFolder folder;
  std::string owner;
  std::vector<std::unique_ptr<ArmLock>> locks;
  locks.push_back(ArmLock::take(folder.path(), owner));
  std::atomic<int> stops = 0;
  {
    const Heartbeat heartbeat(
        locks, [&] { ++stops; }, [](const fs::path&) { FAIL(); });
    std::ofstream(folder / kStopFile) << "stop\n";
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (stops == 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  }
  EXPECT_EQ(stops, 1);
}

}  // namespace
}  // namespace sextant::lab
