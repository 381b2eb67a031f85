#include "sextant/lab/run/python.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPoll{50};
constexpr int kCannotStart = 127;

// The folder of the package if this program is in build/NAME/bin of the source tree; or empty.
std::string package_of_tree() {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path root = (program / "../../../python").lexically_normal();
  return fs::exists(root / "sextant/__init__.py") ? root.string() : "";
}

void set_environment() {
  ::setenv("SEXTANT_COMMAND", fs::read_symlink("/proc/self/exe").c_str(), 0);
  const std::string package = package_of_tree();
  const char* before = std::getenv("PYTHONPATH");
  if (package.empty() || (before && std::string(before).starts_with(package))) return;
  ::setenv("PYTHONPATH", (package + (before ? ":" + std::string(before) : "")).c_str(), 1);
}

// The words as execvp() takes them. They must outlive the result.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void refuse(const std::string& problem, const std::string& must_have) {
  fail(problem + "; SEXTANT_PYTHON names a Python with the package sextant, " + must_have);
}

std::vector<std::string> command(const std::string& module,
                                 const std::vector<std::string>& arguments) {
  std::vector<std::string> words{python_name(), "-m", module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

// Runs between fork and exec, in a process that may have had several threads.
[[noreturn]] void become_child(char* const* words, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotStart);  // the parent is already dead
  ::signal(SIGTERM, SIG_DFL);
  ::execvp(words[0], words);
  ::_exit(kCannotStart);
}

}  // namespace

std::string python_name() {
  const char* named = std::getenv("SEXTANT_PYTHON");
  return named ? named : "python3";
}

void check_python(const std::string& module, const std::string& must_have) {
  set_environment();
  std::vector<std::string> words{
      python_name(), "-c",
      "import importlib.util, sys; sys.exit(importlib.util.find_spec('" + module + "') is None)"};
  std::vector<char*> arguments = pointers_to(words);
  posix_spawn_file_actions_t quiet;
  ::posix_spawn_file_actions_init(&quiet);
  ::posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &quiet, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&quiet);
  if (error != 0) refuse("cannot run " + words[0] + ": " + std::strerror(error), must_have);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) refuse(words[0] + " has no package " + module, must_have);
}

void become_python(const std::string& module, const std::vector<std::string>& arguments,
                   const std::string& must_have) {
  set_environment();
  std::vector<std::string> words = command(module, arguments);
  std::vector<char*> pointers = pointers_to(words);
  std::fflush(nullptr);
  ::execvp(pointers[0], pointers.data());
  refuse("cannot run " + words[0] + ": " + std::strerror(errno), must_have);
}

int run_python(const std::string& module, const std::vector<std::string>& arguments,
               const std::string& must_have, const std::function<bool()>& should_stop) {
  set_environment();
  std::vector<std::string> words = command(module, arguments);
  std::vector<char*> pointers = pointers_to(words);
  std::fflush(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become_child(pointers.data(), parent);
  if (child < 0) refuse("cannot start " + words[0] + ": " + std::strerror(errno), must_have);
  int status = 0;
  bool asked = false;
  for (pid_t ended = 0; ended != child;) {
    ended = ::waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno != EINTR) refuse("cannot wait for " + words[0], must_have);
    if (ended == child) break;
    if (!asked && should_stop()) {
      asked = true;
      ::kill(child, SIGTERM);
    }
    std::this_thread::sleep_for(kPoll);
  }
  if (WIFSIGNALED(status))
    fail(fmt::format("{}: signal {} ({})", words[0], WTERMSIG(status),
                     ::strsignal(WTERMSIG(status))));
  if (WEXITSTATUS(status) == kCannotStart) refuse("cannot run " + words[0], must_have);
  return WEXITSTATUS(status);
}

}  // namespace sextant::lab
