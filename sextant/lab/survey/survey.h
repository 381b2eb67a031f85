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

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/findings.h"
#include "sextant/lab/result/result.h"
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

// Intermediate results of a survey: tables while it runs, and a report marked as partial.

// The order in which to run the arms; tables keep the order of `arms`. For each seed, trainings on
// text come first, with alibi, rope and t5 ahead, then trainings on the small task, then arms that
// are only tested. The first table is thus available early, and short arms at the end leave no core
// idle for long.
std::vector<Arm> running_order(std::span<const Arm> arms);

// The results of the finished arms, in the order of `arms`. `known` caches results that were read.
// Throws Error if a file is damaged or contains the result of another arm.
std::vector<ArmResult> results_of(const SurveyOptions& options,
                                  std::map<std::string, ArmResult>& known);

class SurveySoFar {
 public:
  // `often`: print a table for every eighth of the arms, as on a terminal, instead of every
  // quarter.
  SurveySoFar(const SurveyOptions& options, const nlohmann::json& manifest, bool often,
              Background background = {})
      : options_(options), manifest_(manifest), often_(often), background_(std::move(background)) {}

  // Called after more arms are done; returns lines to print, or "". The first table appears when
  // two methods are trained on text. The report is written with each table, and between tables as
  // long as writing takes at most a twentieth of the time.
  std::string update();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_table_due(std::span<const ArmResult> results) const;
  std::string write(const Findings& findings);

  const SurveyOptions& options_;
  const nlohmann::json& manifest_;
  bool often_;
  Background background_;
  std::map<std::string, ArmResult> known_;
  size_t shown_ = 0;  // arms in the last printed table
  bool failed_ = false;
  Clock::time_point written_ = {};
  Clock::duration writing_ = {};  // the time to write the last report
};

}  // namespace sextant::lab
