// Intermediate results of a survey: tables while it runs, and a report marked as partial.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sextant/lab/report/findings.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/survey/survey.h"

namespace sextant::lab {

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
