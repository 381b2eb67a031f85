// Runs prepared arms in this process, which holds the locks of their folders (arm_lock.h).
#pragma once

#include <string>
#include <vector>

#include "sextant/lab/run/arm_process.h"

namespace sextant::lab {

// Runs one arm of a survey, or several of one measurement, and leaves out those that are done or
// locked. threads: of a survey's arm, 0: as its settings say. Returns the exit status of the
// process (worker.h): kBusyStatus if an arm was locked.
int run_locked_arms(const std::vector<std::string>& folders, int threads,
                    const ArmProcess& process);

}  // namespace sextant::lab
