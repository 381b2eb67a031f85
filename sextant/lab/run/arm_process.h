// The process of one arm: `sextant arm`, or Python for encodings of one's own.
#pragma once

#include <functional>

#include "sextant/lab/run/plugin.h"

namespace sextant::lab {

// Calls run(), with progress reports to the pipe of the parent process (worker.h) if there is one.
// SIGTERM asks it to save its state and to stop. Returns the exit status of the process. An
// exception is reported to the parent and to standard error.
int run_arm_process(double save_seconds, const std::function<Ending(const Watch&)>& run);

}  // namespace sextant::lab
