// Signals that ask this process to stop.
#pragma once

#include <csignal>

namespace sextant::lab {

// Counts SIGINT, SIGTERM and SIGHUP during its lifetime. A SIGHUP that was ignored, as under nohup,
// stays so. One exists at a time.
class Interruptions {
 public:
  Interruptions();
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;
  ~Interruptions();

  int count() const;

 private:
  struct sigaction old_int_ {
  }, old_term_{}, old_hup_{};
};

// For other handlers of these signals: the first one decides the exit status.
void note_interruption(int signal);

// The exit status of a command that was stopped, as shells have it: 128 and the number of the first
// signal; that of SIGINT if it was stopped otherwise, such as by another process of a training.
int interrupted_status();

}  // namespace sextant::lab
