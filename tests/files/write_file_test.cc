#include "sextant/files/write_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "tests/lab/temporary_folder.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;
using testing::UnorderedElementsAre;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

// Whether write() throws CannotWrite in a process whose files may have no byte.
bool fails_without_room(const std::function<void()>& write) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    try {
      write();
    } catch (const CannotWrite&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0;
}

TEST(WriteFile, KeepsTheFileThatItCannotReplace) {
  const TemporaryFolder folder;
  write_text(folder / "file", "before");
  write_text(folder / "other", "other");
  EXPECT_TRUE(fails_without_room([&] { write_file(folder / "file", "after"); }));
  EXPECT_TRUE(fails_without_room([&] { write_copy(folder / "other", folder / "file"); }));
  EXPECT_EQ(read_text(folder / "file"), "before");
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("file", "other"));
}

TEST(WriteFile, ReplacesAFileAndKeepsItsMode) {
  const TemporaryFolder folder;
  const fs::path file = folder / "deep/file";
  write_file(file, "before");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  struct stat state {};
  ::stat(file.c_str(), &state);
  EXPECT_EQ(state.st_mode & 0777, 0666 & ~mask);
  ::chmod(file.c_str(), 0600);
  write_file(file, "after");
  ::stat(file.c_str(), &state);
  EXPECT_EQ(state.st_mode & 0777, 0600);
  EXPECT_EQ(read_text(file), "after");
  write_copy(file, folder / "copy");
  EXPECT_EQ(read_text(folder / "copy"), "after");
}

TEST(WriteFile, FollowsLinksAndWritesIntoPipes) {
  const TemporaryFolder folder;
  write_text(folder / "file", "before");
  fs::create_symlink("file", folder / "link");
  write_file(folder / "link", "after");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text(folder / "file"), "after");
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(pipe, "bytes");
  char bytes[8] = {};
  EXPECT_EQ(::read(reader, bytes, sizeof bytes), 5);
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(WriteFile, LeavesRoomForItsSuffixInLongNames) {
  const TemporaryFolder folder;
  const fs::path file = folder / std::string(255, 'n');
  write_file(file, "bytes");
  EXPECT_EQ(read_text(file), "bytes");
}

TEST(Leftovers, OfKilledProcessesAreRemovedAndNoOthers) {
  const TemporaryFolder folder;
  const std::vector<std::string> of_users = {"results.csv.aB3dE9",    "data.sextant-aB3dE",
                                             "data.sextant-aB3dE-",   ".sextant-aB3dE9",
                                             "data.sextant-aB3dE9.x", "results.csv"};
  for (const std::string& name : of_users) write_text(folder / name, "");
  fs::create_directory(folder / "folder.sextant-aB3dE9");
  fs::create_symlink("results.csv", folder / "link.sextant-aB3dE9");
  write_text(folder / "dead.sextant-aB3dE9", "");
  const fs::path owned = folder / "owned.sextant-aB3dE9";
  const int living = ::open(owned.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(living, LOCK_EX), 0);
  remove_leftovers(folder.path());
  EXPECT_FALSE(fs::exists(folder / "dead.sextant-aB3dE9"));
  EXPECT_TRUE(fs::exists(owned));
  ::close(living);
  remove_leftovers(folder.path());
  EXPECT_FALSE(fs::exists(owned));
  EXPECT_EQ(names_in(folder.path()).size(), of_users.size() + 2);
}

// While one process writes a file again and again, leftovers are removed: no write fails.
TEST(Leftovers, AreNotTakenFromALivingWriter) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      for (int n = 0; n < 20; ++n) write_file(folder / "file", "bytes");
    } catch (const Error&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) remove_leftovers(folder.path());
  EXPECT_EQ(status, 0);
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("file"));
}

}  // namespace
}  // namespace sextant
