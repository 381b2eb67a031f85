#include "sextant/lab/survey/survey_so_far.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "sextant/base/error.h"
#include "sextant/base/reason.h"
#include "sextant/files/checked_json.h"
#include "sextant/lab/report/page.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/report/tables_text.h"
#include "sextant/lab/run/survey_arms.h"

namespace sextant::lab {
namespace {

// Well-known methods, one that holds and one that breaks among them.
constexpr std::array<std::string_view, 3> kFirst = {"alibi", "rope", "t5"};
constexpr size_t kFirstTable = 2;  // trainings on text before the first table
constexpr size_t kFewest = 3;      // minimum of arms between two tables
constexpr int kWriteShare = 20;    // inverse of the share of time that reports may take

bool trains_on_text(const Arm& arm) { return arm.weights_from.empty() && is_on_text(arm.task); }

}  // namespace

std::vector<Arm> running_order(std::span<const Arm> arms) {
  const auto rank = [](const Arm& arm) {
    const auto place = std::ranges::find(kFirst, arm.label) - kFirst.begin();
    const int kind = trains_on_text(arm) ? 0 : arm.weights_from.empty() ? 1 : 2;
    return std::tuple(arm.seed, kind, kind == 0 ? place : 0);
  };
  std::vector<Arm> order(arms.begin(), arms.end());
  std::ranges::stable_sort(order, {}, rank);
  return order;
}

std::vector<ArmResult> results_of(const SurveyOptions& options,
                                  std::map<std::string, ArmResult>& known) {
  std::vector<ArmResult> results;
  for (const Arm& arm : options.arms) {
    if (!is_done(options.directory, arm)) continue;
    auto found = known.find(arm.name());
    if (found == known.end()) {
      const std::filesystem::path path = arm_directory(options.directory, arm) / kResultFile;
      const auto result = read_result(path);
      if (nlohmann::json(result.arm) != nlohmann::json(arm)) {
        fail("survey: " + path.string() + ": expected a result of " + nlohmann::json(arm).dump() +
             ", but it is one of " + nlohmann::json(result.arm).dump());
      }
      found = known.emplace(arm.name(), result).first;
    }
    results.push_back(found->second);
  }
  return results;
}

bool SurveySoFar::is_table_due(std::span<const ArmResult> results) const {
  const size_t arms = options_.arms.size();
  if (results.size() == arms) return false;  // the final table follows
  if (shown_ > 0) return results.size() >= shown_ + std::max(kFewest, arms / (often_ ? 8 : 4));
  const auto first = static_cast<size_t>(std::ranges::count_if(options_.arms, trains_on_text));
  const auto done = static_cast<size_t>(std::ranges::count_if(
      results, [](const ArmResult& result) { return trains_on_text(result.arm); }));
  return done >= std::min(first, kFirstTable);
}

std::string SurveySoFar::write(const Findings& findings) {
  const Clock::time_point start = Clock::now();
  write_report(options_.directory, manifest_, findings, options_.command,
               status_of(findings.results.size(), options_.arms.size()));
  const bool first = written_ == Clock::time_point{};
  written_ = Clock::now();
  writing_ = written_ - start;
  return first ? fmt::format("Report so far: {}", (options_.directory / kReportFile).string()) : "";
}

std::string SurveySoFar::update() {
  if (failed_) return "";
  try {
    const std::vector<ArmResult> results = results_of(options_, known_);
    std::string text;
    const bool due = is_table_due(results);
    if (due) shown_ = results.size();
    const bool writes = shown_ > 0 && results.size() < options_.arms.size() &&
                        (due || Clock::now() - written_ > kWriteShare * writing_);
    if (!writes) return "";
    const Findings findings = findings_of(results, options_.settings, background_);
    if (due) {
      text = fmt::format("\n{}\n\n{}", status_of(results.size(), options_.arms.size()),
                         tables_text(findings));
    }
    return text + write(findings);
  } catch (const std::exception& error) {
    // The arms continue. An error that persists is thrown again when all are done.
    failed_ = true;
    return fmt::format("results so far: {}", reason_of(error));
  }
}

}  // namespace sextant::lab
