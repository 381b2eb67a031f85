// The progress of a survey on standard error: one line that is redrawn on a terminal, a line now
// and then elsewhere. Results go to standard output.
#pragma once

#include <chrono>
#include <string>

namespace sextant::lab {

class Progress {
 public:
  // A line to keep, such as "rope-0 done". The redrawn line stands below it.
  void say(const std::string& line);

  // Units of work.
  struct Work {
    double done = 0, total = 0;
    double found_done = 0;  // the part of `done` that an earlier run did: it says nothing on speed
  };

  // `now` names the running arms. Drawn at most every 0.1 s on a terminal, every 10 s elsewhere.
  void show(const Work& work, const std::string& now);

  // Takes the redrawn line away.
  ~Progress();

 private:
  using Clock = std::chrono::steady_clock;
  std::string left(const Work& work) const;

  bool drawn_ = false;
  Clock::time_point last_ = {};
  Clock::time_point start_ = Clock::now();
};

// "4 min 10 s"
std::string duration(double seconds);

// A line on standard error. A failure to write it (2>FILE on a full disk) is ignored.
void note(const std::string& line);

}  // namespace sextant::lab
