// The process of one arm: `sextant arm`, or Python for encodings of one's own.
#pragma once

#include <functional>
#include <string>

#include "sextant/lab/run/plugin.h"

namespace sextant::lab {

inline constexpr int kNoProgressFile = -1;

struct ArmProcess {
  double save_seconds = Watch().seconds_between_checkpoints;
  int progress_file = kNoProgressFile;  // the descriptor of the parent's pipe (worker.h)
  bool grouped = false;                 // see Watch
  std::string device = {};              // see Watch
  bool has_parent = true;               // otherwise SIGINT and SIGHUP are as SIGTERM
};

// Calls run(), with progress reports to the pipe. SIGTERM and ask_to_stop() ask it to save its
// state and to stop. Returns the exit status of the process, which run() returns. An exception is
// reported to the parent and to standard error.
int run_arm_process(const ArmProcess& process, const std::function<int(const Watch&)>& run);

// The exit status for an ending without an error.
int status_of(Ending ending);

// From any thread.
void ask_to_stop();

// Sends a line of worker.h to the parent; errors are ignored, as nothing depends on it.
void send_line(int progress_file, const std::string& line);

}  // namespace sextant::lab
