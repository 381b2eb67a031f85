// Runs the unfinished arms, several at a time, each in its own process.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

struct ScheduleOptions {
  std::filesystem::path directory;  // of the survey; each arm has a folder in its arms/
  // The command, to which the arm's folder is added: {"/proc/self/exe", "worker"}.
  std::vector<std::string> worker;
  int jobs = 1;  // arms at a time
  // Called after more arms are done, when the next ones are already running. The lines it returns
  // are printed between progress lines. May be empty.
  std::function<std::string()> on_done = {};
};

struct ScheduleEnd {
  bool stopped = false;      // before all arms were done; finished work is kept
  std::string cannot_write;  // why, if not by a signal: "rope-0: write ...: cannot write: ..."
  std::vector<std::string> failures;  // "rope-0: signal 9 (Killed); see .../log.txt"
};

std::filesystem::path arm_directory(const std::filesystem::path& survey, const Arm& arm);
bool is_done(const std::filesystem::path& survey, const Arm& arm);

// Number of tokens that the tests of an arm of this task process.
double test_tokens(const Settings& settings, Task task);

// Estimated work of an arm, in tokens of a forward pass of the text model.
double work_of(const Settings& settings, const Arm& arm);

// Runs the arms in the given order. Each arm's folder must contain its arm.json. The first SIGINT
// or SIGTERM lets the arms save their state and stop, a second one kills them. An arm that fails
// blocks only the arms that need its weights. An arm that cannot write stops the whole schedule,
// because all arms write to the same directory.
ScheduleEnd run_arms(const Settings& settings, std::span<const Arm> arms,
                     const ScheduleOptions& options);

}  // namespace sextant::lab
