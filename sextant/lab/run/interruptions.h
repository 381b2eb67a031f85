// Signals that ask this process to stop.
#pragma once

#include <csignal>

namespace sextant::lab {

// Counts SIGINT and SIGTERM during its lifetime. One exists at a time.
class Interruptions {
 public:
  Interruptions();
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;
  ~Interruptions();

  int count() const;

 private:
  struct sigaction old_int_ {
  }, old_term_{};
};

}  // namespace sextant::lab
