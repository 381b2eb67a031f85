// A survey: train each method on short sequences, test it on long ones, report where it breaks.
//
//   text files --corpus--> training bytes, test bytes         the same for every arm
//   arms = methods x seeds                                    arms/rope-0/arm.json
//     each in a worker process (schedule, worker, plugin):    libsextant_lab, with libtorch
//       train --checkpoint-NNN.sxt--> model.safetensors       durable: kill -9 costs seconds
//       test  --> result.json                                 the arm is done when this file exists
//   some result.json --> tables so far on standard error, report.html marked as partial
//   all result.json --> table on standard output, results.json, results.csv, charts, report.html
//
// A survey is stored in its directory, whose manifest has the settings that all arms share. Running
// the same command again resumes the survey, and other methods or seeds add arms. A command with
// other shared settings is refused, because its results could not be compared in one table. Arms of
// a seed share the initial weights except those of the method, the batches and their order, and the
// test bytes, so the method alone causes their differences.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/hand_out.h"

namespace sextant::lab {

struct SurveyOptions {
  Settings settings;
  std::vector<Arm> arms;
  std::vector<std::filesystem::path> text;
  std::filesystem::path directory;
  std::vector<std::string> worker;  // command that runs one arm, without the arm's folder
  std::string command;              // the user's command line, for "go on with" and the report
  int jobs = 1;
  bool dry_run = false;  // only print the plan
  HandOut hand_out = {};
};

enum class SurveyEnd {
  kDone,
  kSomeFailed,
  kStopped,
  kIncomplete,  // other workers are at some arms, or a collected survey lacks some
};

// Prints the table on standard output once, at the end, and progress and intermediate tables on
// standard error. Throws Error.
SurveyEnd run_survey(const SurveyOptions& options);

}  // namespace sextant::lab
