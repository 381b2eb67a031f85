// Arms that have no result yet are run in an order in which tables have lines early. Findings are
// derived from the results so far, and the report of an unfinished survey stays until it goes on.
#include "sextant/lab/survey/survey.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>
#include <tuple>

#include "sextant/base/error.h"
#include "sextant/base/reason.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/manifest.h"
#include "sextant/lab/report/advice.h"
#include "sextant/lab/report/claims.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/report/result_table.h"
#include "sextant/lab/report/survey_record.h"
#include "sextant/lab/run/arm_process.h"
#include "sextant/lab/run/hand_out.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/print.h"
#include "sextant/lab/run/schedule.h"
#include "sextant/version.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<Arm> not_done(const SurveyOptions& options) {
  std::vector<Arm> arms;
  for (const Arm& arm : options.arms)
    if (!is_done(options.directory, arm)) arms.push_back(arm);
  return arms;
}

// A path as an arm's folder has it, which other machines may see elsewhere: one that was given as
// relative is relative to that folder.
std::string path_from(const fs::path& folder, const fs::path& path) {
  return path.is_absolute() ? path.string() : fs::proximate(path, folder).string();
}

void prepare(const SurveyOptions& options, const std::vector<Arm>& arms, const json& manifest) {
  if (!fs::exists(options.directory / kManifestFile))
    write_json(options.directory / kManifestFile, manifest);
  for (const Arm& arm : arms) {
    const fs::path folder = arm_directory(options.directory, arm);
    json text = json::array();
    for (const fs::path& path : options.text) text.push_back(path_from(folder, path));
    write_json(folder / kArmFile, {{"arm", arm},
                                   {"settings", manifest.at("settings")},
                                   {"text", manifest.at("text")},
                                   {"files", text}});
  }
}

void print_plan(const SurveyOptions& options, const std::vector<Arm>& arms, const json& manifest) {
  print("{} of {} arms to do, {} at a time, in {}\n", arms.size(), options.arms.size(),
        options.jobs, options.directory.string());
  for (const Arm& arm : options.arms) {
    const bool done = is_done(options.directory, arm);
    const int64_t steps = training_of(options.settings, arm).steps();
    const std::string how = arm.weights_from.empty() ? fmt::format("train {} steps, test", steps)
                            : arm.trains() ? fmt::format("train the weights of {} {} steps, test",
                                                         arm.weights_from, steps)
                                           : "test with the weights of " + arm.weights_from;
    print("  {:<23} {}\n", arm.name(), done ? "done" : how);
  }
  print_text(manifest.dump(2) + "\n");
}

// "About 5 min 20 s and 400 MB of memory for each of 2 at a time ..."
std::string estimate_of(const SurveyOptions& options, const std::vector<Arm>& arms) {
  if (arms.empty()) return "";
  std::map<Task, ArmCost> costs;
  double seconds = 0;
  int64_t bytes = 0;
  for (const Arm& arm : arms) {
    if (!costs.contains(arm.task))
      costs[arm.task] = open_plugin(options.settings.threads).cost(options.settings, arm.task);
    const ArmCost& cost = costs.at(arm.task);
    // Steps of a tuning process as many tokens as steps of a training, so they cost the same.
    if (arm.trains())
      seconds +=
          cost.step_seconds * static_cast<double>(training_of(options.settings, arm).steps());
    seconds += cost.test_seconds;
    bytes = std::max(bytes, cost.bytes);
  }
  const auto at_once = std::min(options.jobs, static_cast<int>(arms.size()));
  return fmt::format(
      "About {} and {:.0f} MB of memory for each of {} at a time, as found by a few steps of rope "
      "here; other methods take up to twice as long, dynamic stretches more.\n",
      duration(seconds / at_once), static_cast<double>(bytes) / 1e6, at_once);
}

// The default options of the methods. The plug-in is opened at the first call, so that a finished
// survey is printed without it, unless a claim needs a default.
OptionDefaults option_defaults(int threads) {
  const auto known = std::make_shared<std::map<std::string, std::string>>();
  return [known, threads](const std::string& method) -> std::string {
    if (known->empty()) {
      for (const KnownMethod& one : open_plugin(threads).methods())
        (*known)[one.name] = one.options;
    }
    const auto found = known->find(method);
    return found == known->end() ? "{}" : found->second;
  };
}

ScheduleEnd run(const SurveyOptions& options, const std::vector<Arm>& to_do, const json& manifest,
                const Background& background) {
  prepare(options, to_do, manifest);
  note(fmt::format("{} of {} arms to do, {} at a time, in {}", to_do.size(), options.arms.size(),
                   options.jobs, options.directory.string()));
  SurveySoFar so_far(options, manifest, ::isatty(STDERR_FILENO) == 1, background);
  return run_arms(scheduled(options.directory, options.settings, running_order(options.arms)),
                  {.worker = options.worker,
                   .jobs = options.jobs,
                   .launch = options.hand_out.launch,
                   .on_done = [&] { return so_far.update(); }});
}

void print_findings(const Findings& findings) {
  print_text(tables_text(findings));
  if (!findings.claims.empty()) print_text("\n" + claims_text(findings.claims));
  const std::string advised = advice_text(advice(findings));
  if (!advised.empty()) print_text("\n" + advised);
  const std::string unlike = unlike_machines_text(machines_of(findings.results));
  if (!unlike.empty()) print_text("\n" + unlike);
}

// Writes the partial report, which stays until the survey continues. If the disk is full the report
// is omitted; `end` already has the reason.
void write_partial(const SurveyOptions& options, const json& manifest, const Findings& findings) {
  try {
    write_report(options.directory, manifest, findings, options.command,
                 status_of(findings.results.size(), options.arms.size()));
    note(fmt::format("\nReport so far: {}", (options.directory / kReportFile).string()));
  } catch (const CannotWrite& error) {
    note(fmt::format("\nno report so far: {}", error.what()));
  }
}

void write_complete(const SurveyOptions& options, const json& manifest, const Findings& findings) {
  const std::string status = status_of(findings.results.size(), options.arms.size());
  if (!is_written(options.directory, manifest, findings, status))
    write_results(options.directory, manifest, findings, options.command, status);
  const std::string trained = speed(findings);
  note(fmt::format("{}\nCharts and all numbers: {}",
                   trained.empty() ? "" : "\nTrained at " + trained + ".",
                   (options.directory / kReportFile).string()));
}

SurveyEnd incomplete(const SurveyOptions& options, const ScheduleEnd& end) {
  const auto arms = scheduled(options.directory, options.settings, running_order(options.arms));
  for (const std::string& busy : end.busy) note("left out: " + busy);
  for (const std::string& failure : end.failures) note("failed: " + failure);
  note(missing_text(arms));
  return SurveyEnd::kIncomplete;
}

SurveyEnd stopped(const SurveyOptions& options, const ScheduleEnd& end, size_t done) {
  const bool full = !end.cannot_write.empty();
  note(fmt::format("{}\nstopped: {} of {} arms are done. To go on{}:\n  {}",
                   full ? "\n" + end.cannot_write : "", done, options.arms.size(),
                   full ? ", when it can be written" : "", options.command));
  for (const std::string& failure : end.failures) note("failed: " + failure);
  return full ? SurveyEnd::kSomeFailed : SurveyEnd::kStopped;
}

// Well-known methods, one that holds and one that breaks among them.
constexpr std::array<std::string_view, 3> kFirst = {"alibi", "rope", "t5"};
constexpr size_t kFirstTable = 2;  // trainings on text before the first table
constexpr size_t kFewest = 3;      // minimum of arms between two tables
constexpr int kWriteShare = 20;    // inverse of the share of time that reports may take

bool trains_on_text(const Arm& arm) { return arm.weights_from.empty() && is_on_text(arm.task); }

}  // namespace

SurveyEnd run_survey(const SurveyOptions& options) {
  check(options.settings);
  const Corpus corpus = read_corpus(options.text, options.settings.test.share);
  test_blocks(corpus, options.settings.test.longest(), options.settings.test.blocks);
  train_window(corpus, options.settings.training.length, 0, 1, 0, 0);
  const json manifest{
      {"sextant", version()}, {"settings", options.settings}, {"text", identity(corpus)}};
  check_manifest("survey", "--out", options.directory, manifest);

  const std::vector<Arm> arms = not_done(options);
  if (!arms.empty() && options.hand_out.stage != Stage::kCollect) {
    const Plugin& plugin = open_plugin(options.settings.threads);
    // Prepared and launched arms run on other machines; the estimate of a dry run measures here.
    const bool here = options.hand_out.stage == Stage::kRun && options.hand_out.launch.empty();
    if (here || options.dry_run) plugin.check_device(options.settings.device);
    plugin.check(options.settings, options.arms);
    check_own_arms(options.settings, arms);
  }
  if (options.dry_run) {
    print_plan(options, arms, manifest);
    print_text(estimate_of(options, arms));
    return SurveyEnd::kDone;
  }

  const DirectoryLock lock("survey", options.directory);
  const Stage stage = options.hand_out.stage;
  if (stage == Stage::kPrepare) {
    const auto all = scheduled(options.directory, options.settings, running_order(options.arms));
    prepare(options, arms, manifest);
    write_lists(options.directory, all);
    print_text(prepared_text(options.directory, all, "survey"));
    return SurveyEnd::kDone;
  }
  const Background background{.bigrams = bigrams_of(corpus, options.settings),
                              .defaults = option_defaults(options.settings.threads)};
  const bool runs = !arms.empty() && stage == Stage::kRun;
  const ScheduleEnd end = runs ? run(options, arms, manifest, background) : ScheduleEnd{};
  std::map<std::string, ArmResult> none;
  const Findings findings = findings_of(results_of(options, none), options.settings, background);
  const size_t done = findings.results.size();
  if (done > 0) print_findings(findings);
  std::fflush(stdout);
  if (end.stopped) {
    if (done > 0) write_partial(options, manifest, findings);
    return stopped(options, end, done);
  }
  if (!end.busy.empty() || (stage == Stage::kCollect && done < options.arms.size())) {
    if (done > 0) write_partial(options, manifest, findings);
    return incomplete(options, end);
  }
  if (done > 0) write_complete(options, manifest, findings);
  for (const std::string& failure : end.failures) note("failed: " + failure);
  return end.failures.empty() ? SurveyEnd::kDone : SurveyEnd::kSomeFailed;
}

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
      if (nlohmann::json(result.arm) != nlohmann::json(arm))
        fail("survey: " + path.string() + ": expected a result of " + nlohmann::json(arm).dump() +
             ", but it is one of " + nlohmann::json(result.arm).dump());
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
    if (due)
      text = fmt::format("\n{}\n\n{}", status_of(results.size(), options_.arms.size()),
                         tables_text(findings));
    return text + write(findings);
  } catch (const std::exception& error) {
    // The arms continue. An error that persists is thrown again when all are done.
    failed_ = true;
    return fmt::format("results so far: {}", reason_of(error));
  }
}

}  // namespace sextant::lab
