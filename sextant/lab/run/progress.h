// The progress of a survey on standard error: one redrawn line on a terminal, else a line every ten
// seconds. Results go to standard output.
#pragma once

#include <chrono>
#include <string>

namespace sextant::lab {

class Progress {
 public:
  // Prints a permanent line, such as "rope-0 done", above the redrawn line.
  void say(const std::string& line);

  // Units of work.
  struct Work {
    double done = 0, total = 0;
    double found_done = 0;  // part of `done` from an earlier run, excluded from the speed
  };

  // `now` describes the running arms. Redraws at most every 0.1 s on a terminal, else every 10 s.
  void show(const Work& work, const std::string& now);

  // Erases the redrawn line.
  ~Progress();

 private:
  using Clock = std::chrono::steady_clock;
  std::string left(const Work& work) const;
  void clear();

  bool drawn_ = false;
  Clock::time_point last_ = {};
  Clock::time_point start_ = Clock::now();
};

// "4 min 10 s"
std::string duration(double seconds);

}  // namespace sextant::lab
