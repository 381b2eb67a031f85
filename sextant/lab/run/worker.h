// A worker process that runs one arm, as seen from its parent process.
//
// Workers are processes instead of threads for two reasons. Two trainings of one thread each
// process 32 thousand bytes per second on two cores, one training of two threads 10 thousand. And a
// crash ends one arm instead of all.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::lab {

// The last progress report of a worker, sent as a line "DONE TOTAL TEXT" through a pipe.
struct ProgressReport {
  double done = 0, total = 0;  // units of work, see work_of
  std::string text;            // "training, step 400 of 781, loss 1.73"
};
std::string line_of(const ProgressReport& report);
// Empty if the line is no report.
std::optional<ProgressReport> report_of(std::string_view line);
// The reason why a worker fails, sent as a line "! TEXT" through the same pipe, because the log may
// be on a full disk.
std::string line_of_failure(const std::string& why);

enum class Ending {
  kDone,
  kStopped,      // on request, after saving its state
  kBusy,         // another worker has the lock of the arm, see arm_lock.h
  kCannotWrite,  // as CannotWrite of write_file.h; other workers will fail, too
  kFailed,
};

// Exit status of a worker that stopped on request (EX_TEMPFAIL: try again).
inline constexpr int kStoppedStatus = 75;
// Exit status of a worker that could not write (EX_IOERR).
inline constexpr int kCannotWriteStatus = 74;
// Exit status of a worker that did nothing because another one has the lock of its arm.
inline constexpr int kBusyStatus = 76;

// The descriptor of the progress pipe in a worker, which is told it by --progress-fd.
inline constexpr int kProgressFile = 3;

enum class ProcessGroup { kShared, kOwn };

class Worker {
 public:
  // Runs `command`, whose first element is a program, with the write end of the progress pipe as
  // descriptor 3. Its output is appended to `log`. The worker is killed when this process ends for
  // any reason. A worker is in the process group of this process, or in its own, where Ctrl-C and
  // Ctrl-Z of a terminal do not reach it. Throws CannotWrite if `log` cannot be opened.
  Worker(const std::vector<std::string>& command, const std::filesystem::path& log,
         ProcessGroup group = ProcessGroup::kShared);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();  // kills a running worker

  int file() const { return pipe_; }  // when readable, call read()
  bool read();                        // false at end of file: call finish()
  const ProgressReport& report() const { return report_; }
  void send(int signal) const;

  // Waits for the worker to end. On kFailed, `why` is "exit status 1" or "signal 11 (Segmentation
  // fault)".
  Ending finish(std::string& why);
  // The reason that the worker gave for its failure; empty if none.
  const std::string& said() const { return failure_; }

 private:
  void take_line(const char* begin, const char* end);

  pid_t process_ = -1;
  int pipe_ = -1;
  std::string unread_;  // an incomplete line
  ProgressReport report_;
  std::string failure_;
};

// The last line of a worker's log that is not empty, for messages; empty if there is none.
std::string last_line(const std::filesystem::path& log);

}  // namespace sextant::lab
