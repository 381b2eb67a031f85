// A worker is a process of this command whose reports are lines on a pipe. Lines that are no report
// are ignored.
#include "sextant/lab/run/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>

#include "sextant/base/error.h"
#include "sextant/files/write_file.h"

namespace sextant::lab {
namespace {

constexpr int kCannotStart = 127;

[[noreturn]] void cannot(const std::string& what, int error) {
  fail("worker: cannot " + what + ": " + std::strerror(error));
}

// Runs between fork and exec, so it makes only calls that are safe after a fork of a multithreaded
// process.
[[noreturn]] void become(char* const* arguments, int progress, int log, pid_t parent,
                         ProcessGroup group) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotStart);  // the parent is already dead
  // Ctrl-C reaches the whole process group; the parent decides how to stop the worker.
  if (group == ProcessGroup::kOwn) ::setpgid(0, 0);
  // A terminal sends these two to the whole group. The parent then asks by SIGTERM.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  // If the pipe already is descriptor 3, dup2() would leave its close-on-exec flag set.
  if (progress == kProgressFile) {
    ::fcntl(progress, F_SETFD, 0);
  } else {
    ::dup2(progress, kProgressFile);
  }
  ::execvp(arguments[0], arguments);
  ::_exit(kCannotStart);
}

}  // namespace

std::string line_of(const ProgressReport& report) {
  return fmt::format("{} {} {}\n", report.done, report.total, report.text);
}

std::string line_of_failure(const std::string& why) {
  std::string line = fmt::format("! {}", why);
  std::ranges::replace(line, '\n', ' ');
  return line + "\n";
}

std::optional<ProgressReport> report_of(std::string_view line) {
  const char* end = line.data() + line.size();
  ProgressReport report;
  const auto done = std::from_chars(line.data(), end, report.done);
  if (done.ec != std::errc{} || done.ptr == end) return std::nullopt;
  const auto total = std::from_chars(done.ptr + 1, end, report.total);
  if (total.ec != std::errc{} || total.ptr == end) return std::nullopt;
  report.text.assign(total.ptr + 1, end);
  return report;
}

Worker::Worker(const std::vector<std::string>& command, const std::filesystem::path& log,
               ProcessGroup group) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) cannot("make a pipe", errno);
  const int log_file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const int log_error = errno;
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  if (log_file >= 0) process_ = ::fork();
  if (process_ == 0) become(arguments.data(), ends[1], log_file, parent, group);
  const int fork_error = errno;
  ::close(ends[1]);
  if (log_file >= 0) ::close(log_file);
  if (process_ < 0) {
    ::close(ends[0]);
    if (log_file < 0)
      throw CannotWrite("worker: cannot open " + log.string() + ": " + std::strerror(log_error));
    cannot("start a process", fork_error);
  }
  pipe_ = ends[0];
}

Worker::~Worker() {
  if (pipe_ >= 0) ::close(pipe_);
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
}

// Ignores lines that are not reports: a library may print into any open descriptor.
void Worker::take_line(const char* begin, const char* end) {
  if (std::string_view(begin, end).starts_with("! ")) {
    failure_.assign(begin + 2, end);
    return;
  }
  if (const std::optional<ProgressReport> report = report_of({begin, end})) report_ = *report;
}

bool Worker::read() {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(pipe_, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  unread_.append(buffer.data(), static_cast<size_t>(count));
  const size_t end = unread_.rfind('\n');
  if (end == std::string::npos) return true;
  for (size_t begin = 0; begin <= end;) {
    const size_t stop = unread_.find('\n', begin);
    take_line(unread_.data() + begin, unread_.data() + stop);
    begin = stop + 1;
  }
  unread_.erase(0, end + 1);
  return true;
}

void Worker::send(int signal) const { ::kill(process_, signal); }

Ending Worker::finish(std::string& why) {
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    why = fmt::format("signal {} ({})", signal, ::strsignal(signal));
    return Ending::kFailed;
  }
  const int exit = WEXITSTATUS(status);
  if (exit == 0) return Ending::kDone;
  if (exit == kStoppedStatus) return Ending::kStopped;
  if (exit == kBusyStatus) return Ending::kBusy;
  if (exit == kCannotWriteStatus && !failure_.empty()) return Ending::kCannotWrite;
  why = fmt::format("exit status {}", exit);
  return Ending::kFailed;
}

std::string last_line(const std::filesystem::path& log) {
  std::ifstream file(log);
  std::string line, last;
  while (std::getline(file, line))
    if (!line.empty()) last = line;
  return last;
}

}  // namespace sextant::lab
