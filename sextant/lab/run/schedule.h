// Runs the arms that are not done yet, a few at a time, each in a process of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

struct ScheduleOptions {
  std::filesystem::path directory;  // of the survey; arms live in its arms/
  std::vector<std::string>
      worker;    // command; the arm's folder is added: {"/proc/self/exe", "worker"}
  int jobs = 1;  // at a time
  // Called when more arms are done, with the next ones already running; its lines are printed among
  // those of the progress. May be empty.
  std::function<std::string()> on_done = {};
};

struct ScheduleEnd {
  bool stopped = false;  // before all was done; finished work is kept
  std::string
      cannot_write;  // the reason other than a signal: "rope-0: write ...: cannot write: ..."
  std::vector<std::string> failures;  // "rope-0: signal 9 (Killed); see .../log.txt"
};

std::filesystem::path arm_directory(const std::filesystem::path& survey, const Arm& arm);
bool is_done(const std::filesystem::path& survey, const Arm& arm);

// How many tokens an arm of this task reads in its tests.
double test_tokens(const Settings& settings, Task task);

// An estimate of an arm's work, in tokens forward through the text model.
double work_of(const Settings& settings, const Arm& arm);

// Runs the arms in their order. Each arm's arm.json must be in its folder. SIGINT and SIGTERM stop
// the schedule in good order, a second one at once. An arm that fails holds up only the arms that
// need its weights; one that cannot write stops all, since they write to the same place.
ScheduleEnd run_arms(const Settings& settings, std::span<const Arm> arms,
                     const ScheduleOptions& options);

}  // namespace sextant::lab
