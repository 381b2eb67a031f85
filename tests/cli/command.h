// Runs the command `sextant` as from a shell.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/lab/temporary_folder.h"

namespace sextant::cli {

// The pause of a test that waits for a running command.
inline void wait_a_moment() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

// A running command, with its outputs in files.
class Running {
 public:
  // before() runs in the new process before exec.
  Running(
      const std::vector<std::string>& arguments, const std::filesystem::path& folder,
      const std::function<void()>& before = [] {})
      : out_(folder / "stdout.txt"), err_(folder / "stderr.txt") {
    process_ = ::fork();
    if (process_ != 0) return;
    ::setpgid(0, 0);  // so that Ctrl-C for the command does not stop the test
    ::dup2(::open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
    ::dup2(::open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
    std::vector<char*> words{const_cast<char*>(SEXTANT_COMMAND)};
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    before();
    ::execv(words[0], words.data());
    ::_exit(126);
  }

  pid_t process() const { return process_; }
  bool is_over() {
    if (!over_ && ::waitpid(process_, &status_, WNOHANG) == process_) over_ = true;
    return over_;
  }
  // Returns the exit status, or -signal.
  int wait() {
    if (!over_) ::waitpid(process_, &status_, 0);
    over_ = true;
    return WIFSIGNALED(status_) ? -WTERMSIG(status_) : WEXITSTATUS(status_);
  }
  std::string out() const { return read_text(out_); }
  std::string err() const { return read_text(err_); }

 private:
  std::filesystem::path out_, err_;
  pid_t process_ = -1;
  int status_ = 0;
  bool over_ = false;
};

struct Ended {
  int status = 0;
  std::string out, err;
};

inline Ended run(
    const std::vector<std::string>& arguments, const std::function<void()>& before = [] {}) {
  const TemporaryFolder folder;
  Running running(arguments, folder.path(), before);
  const int status = running.wait();
  return {status, running.out(), running.err()};
}

}  // namespace sextant::cli
