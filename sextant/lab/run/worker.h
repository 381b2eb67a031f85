// One arm at work in a process of its own, seen from the process that started it.
//
// Processes and not threads: two trainings of one thread each read 32 thousand bytes per second on
// two cores, one training of two threads 10 thousand; and a crash takes one arm with it, not all.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace sextant::lab {

// What a worker last said: a line "DONE TOTAL TEXT" on its progress pipe.
struct Report {
  double done = 0, total = 0;  // units of work, see work_of
  std::string text;            // "training, step 400 of 781, loss 1.73"
};
std::string line_of(const Report& report);
// Why a worker fails: a line "! TEXT" there. Its log may lie on the disk that is full.
std::string line_of_failure(const std::string& why);

enum class Ending {
  kDone,
  kStopped,      // was asked to and saved what it had
  kCannotWrite,  // as CannotWrite of write_file.h: others will not either
  kFailed,
};

// How a worker says that it was stopped in good order (EX_TEMPFAIL: try again).
inline constexpr int kStoppedStatus = 75;
// Or that it could not write (EX_IOERR).
inline constexpr int kCannotWriteStatus = 74;

class Worker {
 public:
  // Runs `command` (its first word is the path of a program) with the write end of the progress
  // pipe as file 3; output goes to the end of `log`. It is killed when this process dies, however
  // it dies. Throws CannotWrite if there can be no log.
  Worker(const std::vector<std::string>& command, const std::filesystem::path& log);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();  // kills it if it is still there

  int file() const { return pipe_; }  // readable: call read()
  bool read();                        // false at the end: call finish()
  const Report& report() const { return report_; }
  void send(int signal) const;

  // Waits for its end. On kFailed `why` says "exit status 1" or "signal 11 (Segmentation fault)".
  Ending finish(std::string& why);
  // Its own words on why it failed; empty if it had none.
  const std::string& said() const { return failure_; }

 private:
  void take_line(const char* begin, const char* end);

  pid_t process_ = -1;
  int pipe_ = -1;
  std::string unread_;  // the beginning of a line
  Report report_;
  std::string failure_;
};

inline constexpr int kProgressFile = 3;

}  // namespace sextant::lab
