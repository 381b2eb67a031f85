// Arms are prepared as folders first. A worker in Python, or those of a launcher, then measure the
// ones that are not done, and the facts of done arms are said once.
#include "sextant/lab/run/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <memory>
#include <set>

#include "sextant/base/error.h"
#include "sextant/files/read_file.h"
#include "sextant/lab/plan/manifest.h"
#include "sextant/lab/result/block_losses.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/interruptions.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/print.h"
#include "sextant/lab/run/python.h"
#include "sextant/lab/run/schedule.h"
#include "sextant/lab/run/worker.h"
#include "sextant/version.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kPollMilliseconds = 100;

constexpr const char* kMustHave = "torch and transformers";

fs::path folder_of(const Measurement& measurement, const MeasuredArm& arm) {
  return measurement.folder / "arms" / arm.name;
}

bool is_done(const Measurement& measurement, const MeasuredArm& arm) {
  return fs::exists(folder_of(measurement, arm) / kMeasuredFile);
}

void prepare(const Measurement& measurement, const json& manifest) {
  if (!fs::exists(measurement.folder / kManifestFile))
    write_json(measurement.folder / kManifestFile, manifest);
  for (const MeasuredArm& arm : measurement.arms) {
    if (!is_done(measurement, arm))
      write_json(folder_of(measurement, arm) / kArmFile, arm.assignment);
  }
}

// A worker with the requests to stop that it was sent.
class Watched {
 public:
  Watched(const Measurement& measurement, const std::vector<std::string>& command)
      : measurement_(measurement), worker_(command, measurement.folder / kLogFile) {}

  Ending run(std::string& why) {
    while (poll()) {
      if (interruptions_.count() > sent_) stop();
      show();
    }
    return worker_.finish(why);
  }

  bool interrupted() const { return interruptions_.count() > 0; }
  const std::string& said() const { return worker_.said(); }

 private:
  // False at the end of the worker's reports.
  bool poll() {
    pollfd file{.fd = worker_.file(), .events = POLLIN, .revents = 0};
    if (::poll(&file, 1, kPollMilliseconds) <= 0) return true;
    return worker_.read();
  }

  void stop() {
    sent_ = interruptions_.count();
    if (sent_ == 1)
      progress_.say("stopping after the present sequence (once more to stop at once)");
    worker_.send(sent_ == 1 ? SIGTERM : SIGKILL);
  }

  void show() {
    const ProgressReport& report = worker_.report();
    if (report.total <= 0) return;
    if (!found_) found_ = std::make_unique<double>(report.done);
    progress_.show({.done = report.done, .total = report.total, .found_done = *found_},
                   report.text);
  }

  const Measurement& measurement_;
  const Interruptions interruptions_;
  Worker worker_;
  Progress progress_;
  int sent_ = 0;
  std::unique_ptr<double> found_;  // what an earlier run did
};

// The models of an endpoint run in its server.
bool needs_torch(const Measurement& measurement) {
  return std::ranges::any_of(measurement.arms, [](const MeasuredArm& arm) {
    return arm.assignment.value("endpoint", json()).is_null();
  });
}

std::vector<ScheduledArm> scheduled(const Measurement& measurement) {
  std::vector<ScheduledArm> arms;
  for (const MeasuredArm& arm : measurement.arms)
    arms.push_back(
        {.name = arm.name, .folder = folder_of(measurement, arm), .done_file = kMeasuredFile});
  return arms;
}

MeasureEnd incomplete(const Measurement& measurement) {
  note(missing_text(scheduled(measurement)));
  return MeasureEnd::kIncomplete;
}

MeasureEnd run_worker(const Measurement& measurement, const std::vector<std::string>& folders) {
  std::vector<std::string> command{"/proc/self/exe", "arm", "--progress-fd",
                                   std::to_string(kProgressFile)};
  command.insert(command.end(), folders.begin(), folders.end());
  Watched watched(measurement, command);
  std::string why;
  const Ending ending = watched.run(why);
  if (ending == Ending::kStopped || (ending == Ending::kFailed && watched.interrupted()))
    return MeasureEnd::kStopped;
  if (ending == Ending::kBusy) {
    note(watched.said());
    return incomplete(measurement);
  }
  const fs::path log = measurement.folder / kLogFile;
  if (ending == Ending::kCannotWrite || !watched.said().empty())
    fail(fmt::format("{}: {}", measurement.command, watched.said()));
  if (ending == Ending::kFailed)
    fail(
        fmt::format("{}: {}; {} says: {}", measurement.command, why, log.string(), last_line(log)));
  return MeasureEnd::kDone;
}

MeasureEnd launch(const Measurement& measurement) {
  const ScheduleEnd end = run_arms(scheduled(measurement), {.worker = {"/proc/self/exe", "arm"},
                                                            .jobs = measurement.hand_out.jobs,
                                                            .launch = measurement.hand_out.launch});
  if (!end.cannot_write.empty()) fail(measurement.command + ": " + end.cannot_write);
  if (!end.failures.empty()) fail(measurement.command + ": " + end.failures.front());
  if (end.stopped) return MeasureEnd::kStopped;
  return end.busy.empty() ? MeasureEnd::kDone : incomplete(measurement);
}

// Says what the arms' facts have for the user, each sentence once. Throws Error if arms were
// measured with other rules for special tokens, as those of an earlier version may be.
MeasureEnd say_facts(const Measurement& measurement) {
  std::vector<std::string> machines;
  std::set<std::string> notes, rules;
  for (const MeasuredArm& arm : measurement.arms) {
    const MeasuredFacts facts = facts_of(measurement, arm);
    const std::string where = (folder_of(measurement, arm) / kMeasuredFile).string();
    const JsonFields fields(facts.all, where);
    machines.push_back(facts.machine);
    rules.insert(fields.optional_string("special_tokens").value_or("none"));
    std::vector<std::string> own;
    if (fields.has("notes")) fields.read("notes", own);
    notes.insert(own.begin(), own.end());
  }
  if (rules.size() > 1)
    fail(
        fmt::format("{}: {}: expected arms with one rule for special tokens, but got {}; measure "
                    "again in another folder",
                    measurement.command, measurement.folder.string(), fmt::join(rules, " and ")));
  notes.insert(unlike_machines_text(machines_of(machines)));
  for (const std::string& text : notes)
    if (!text.empty()) note(text);
  return MeasureEnd::kDone;
}

void check_workers_python(const Measurement& measurement) {
  check_python("sextant.measure", kMustHave);
  if (!needs_torch(measurement)) return;
  for (const char* package : {"torch", "transformers"}) check_python(package, kMustHave);
}

}  // namespace

MeasureEnd run_measurement(const Measurement& measurement) {
  json manifest = measurement.manifest;
  manifest["sextant"] = version();
  check_manifest("measurement", "--out", measurement.folder, manifest);
  const DirectoryLock lock(measurement.command, measurement.folder);
  std::vector<std::string> folders;
  for (const MeasuredArm& arm : measurement.arms)
    if (!is_done(measurement, arm)) folders.push_back(folder_of(measurement, arm).string());
  const Stage stage = measurement.hand_out.stage;
  if (stage == Stage::kPrepare) {
    prepare(measurement, manifest);
    write_lists(measurement.folder, scheduled(measurement));
    print_text(prepared_text(measurement.folder, scheduled(measurement), measurement.command));
    return MeasureEnd::kPrepared;
  }
  if (folders.empty()) return say_facts(measurement);
  if (stage == Stage::kCollect) return incomplete(measurement);
  const bool is_launched = !measurement.hand_out.launch.empty();
  if (!is_launched) check_workers_python(measurement);
  prepare(measurement, manifest);
  note(fmt::format("{} of {} arms to do, in {}", folders.size(), measurement.arms.size(),
                   measurement.folder.string()));
  const MeasureEnd end = is_launched ? launch(measurement) : run_worker(measurement, folders);
  if (end != MeasureEnd::kDone) return end;
  for (const MeasuredArm& arm : measurement.arms) {
    if (!is_done(measurement, arm))
      fail(fmt::format("{}: {}: the worker ended without a result", measurement.command, arm.name));
  }
  return say_facts(measurement);
}

void for_each_record(const Measurement& measurement, const MeasuredArm& arm, int64_t count,
                     const std::function<bool(const JsonFields&)>& take) {
  const fs::path path = folder_of(measurement, arm) / "records.jsonl";
  int64_t found = 0;
  for_each_record(read_file(path), path.string(),
                  [&](const JsonFields& record) { found += take(record) ? 1 : 0; });
  if (found != count)
    fail(fmt::format("{}: expected {} records, but got {}", path.string(), count, found));
}

MeasuredFacts facts_of(const Measurement& measurement, const MeasuredArm& arm) {
  if (!is_done(measurement, arm)) return {};
  const fs::path path = folder_of(measurement, arm) / kMeasuredFile;
  MeasuredFacts facts{.all = read_json(path)};
  const JsonFields fields(facts.all, path.string());
  facts.machine = fields.optional_string("machine").value_or("");
  facts.weights = fields.optional_integer("weights", 0, INT64_MAX).value_or(0);
  return facts;
}

bool is_measured_arm(const fs::path& folder) {
  return read_json(folder / kArmFile).contains("measure");
}

int run_measured_arms(const std::vector<std::string>& folders, const ArmProcess& process,
                      const Watch& watch) {
  const fs::path path = fs::path(folders.front()) / kArmFile;
  const json assignment = read_json(path);
  const JsonFields fields(assignment, path.string());
  set_threads(static_cast<int>(fields.optional_integer("threads", 1, INT_MAX).value_or(1)));
  std::vector<std::string> words{"--progress-fd", std::to_string(process.progress_file)};
  words.insert(words.end(), folders.begin(), folders.end());
  return run_python("sextant.measure", words, kMustHave, [&] { return *watch.stop != 0; });
}

}  // namespace sextant::lab
