// The results of a survey while it runs: its table now and then, and its report, marked as partial.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/report/result.h"
#include "sextant/lab/run/survey.h"

namespace sextant::lab {

// The arms in the order in which they are best run; tables keep the order of `arms`. Seed by seed
// come trainings on text, alibi, rope and t5 first of all, then trainings on pairs, then arms that
// only test: the first table is soon there, and short arms at the end leave no core idle for long.
std::vector<Arm> running_order(std::span<const Arm> arms);

// The results of the arms that are done, in the order of `arms`. `known` keeps what was read.
// Throws Error if a file is damaged or has the result of another arm.
std::vector<ArmResult> results_of(const SurveyOptions& options,
                                  std::map<std::string, ArmResult>& known);

class SurveySoFar {
 public:
  // `often`: a table for every eighth of the arms, as a terminal has room for, instead of every
  // quarter.
  SurveySoFar(const SurveyOptions& options, const nlohmann::json& manifest, bool often)
      : options_(options), manifest_(manifest), often_(often) {}

  // After more arms were done: lines to print, or none. The first table has the first two methods
  // that are trained on text. The report is rewritten then and later, within a twentieth of the
  // time.
  std::string update();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_table_due(std::span<const ArmResult> results) const;
  std::string write(std::span<const ArmResult> results);

  const SurveyOptions& options_;
  const nlohmann::json& manifest_;
  bool often_;
  std::map<std::string, ArmResult> known_;
  size_t shown_ = 0;  // arms in the last table
  bool failed_ = false;
  Clock::time_point written_ = {};
  Clock::duration writing_ = {};  // the time that the last report took
};

}  // namespace sextant::lab
