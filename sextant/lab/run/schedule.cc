// One loop starts the workers of arms, as many at a time as there are jobs, reads their reports,
// and stops them when it is asked to: first by a request, so that they save, later by a kill.
#include "sextant/lab/run/schedule.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>

#include "sextant/files/write_file.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/hand_out.h"
#include "sextant/lab/run/interruptions.h"
#include "sextant/lab/run/print.h"
#include "sextant/lab/run/worker.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kPollMilliseconds = 100;
// Time for workers to save before they are killed. Other machines see a new file late.
constexpr std::chrono::seconds kPatience{20}, kLaunchedPatience{120};
constexpr std::chrono::seconds kBetweenFiles{2};  // reads or writes of progress
constexpr const char* kLaunchLogFile = "launch.txt";

class Schedule {
 public:
  Schedule(std::span<const ScheduledArm> arms, const ScheduleOptions& options) : options_(options) {
    for (const ScheduledArm& arm : arms) {
      const State state = is_done(arm) ? State::kDone : State::kWaiting;
      units_.push_back(
          {.arm = arm, .found_done = state == State::kDone ? arm.work : 0, .state = state});
    }
  }

  ScheduleEnd run() {
    while (true) {
      if (!stopping()) start_what_can();
      if (count(State::kRunning) == 0 && !(waits_ && !stopping())) break;
      say_results();
      wait();
      exchange_files();
      if (stopping()) stop();
      show();
    }
    end_.stopped = stopping() && count(State::kWaiting) > 0;
    return end_;
  }

 private:
  enum class State { kWaiting, kRunning, kDone, kBusy, kFailed };
  struct Unit {
    ScheduledArm arm;
    double found_done = 0;  // the part of its work that an earlier run did
    State state = State::kWaiting;
    std::unique_ptr<Worker> worker = {};
    ProgressReport report = {};
    bool reported = false;  // the first report tells where the arm resumes
  };

  bool is_launched() const { return !options_.launch.empty(); }

  // After a signal, or after a failed write.
  bool stopping() const { return interruptions_.count() > 0 || !end_.cannot_write.empty(); }

  int64_t count(State state) const { return std::ranges::count(units_, state, &Unit::state); }

  fs::path log(const Unit& unit) const {
    return unit.arm.folder / (is_launched() ? kLaunchLogFile : kLogFile);
  }

  void start_what_can() {
    waits_ = false;
    for (Unit& unit : units_) {
      if (count(State::kRunning) >= options_.jobs || stopping()) return;
      if (unit.state != State::kWaiting) continue;
      const State weights = state_of_weights(unit.arm);
      if (weights == State::kDone) start(unit);
      if (weights == State::kBusy) busy(unit, "the weights it needs are not there yet");
      if (weights == State::kFailed)
        failed(unit, fmt::format("needs the weights of {}, which {}",
                                 unit.arm.needs.filename().string(), why_no_weights(unit.arm)));
    }
  }

  const Unit* needed_unit(const ScheduledArm& arm) const {
    const auto found = std::ranges::find_if(
        units_, [&](const Unit& unit) { return unit.arm.folder == arm.needs; });
    return found == units_.end() ? nullptr : &*found;
  }

  State state_of_weights(const ScheduledArm& arm) {
    if (arm.needs.empty()) return State::kDone;
    if (const Unit* unit = needed_unit(arm)) return unit->state;
    if (fs::exists(arm.needs / arm.done_file)) return State::kDone;
    if (!options_.waits) return State::kFailed;
    if (!said_waits_)
      progress_.say(fmt::format("{} waits for the weights of {}", arm.name, arm.needs.string()));
    said_waits_ = waits_ = true;
    return State::kWaiting;
  }

  std::string why_no_weights(const ScheduledArm& arm) const {
    return needed_unit(arm) ? "failed" : "is not done: run it first, or give --wait";
  }

  void start(Unit& unit) {
    const fs::path& folder = unit.arm.folder;
    std::vector<std::string> command = options_.worker;
    if (is_launched()) {
      forget_messages(folder);
      command = launched(options_.launch, command, folder);
    } else {
      command.insert(command.end(),
                     {"--progress-fd", std::to_string(kProgressFile), folder.string()});
    }
    try {
      unit.worker = std::make_unique<Worker>(
          command, log(unit), is_launched() ? ProcessGroup::kOwn : ProcessGroup::kShared);
      unit.state = State::kRunning;
    } catch (const CannotWrite& error) {
      end_.cannot_write = error.what();
    }
  }

  void wait() {
    std::vector<pollfd> files;
    std::vector<Unit*> running;
    for (Unit& unit : units_) {
      if (unit.state != State::kRunning) continue;
      files.push_back({.fd = unit.worker->file(), .events = POLLIN, .revents = 0});
      running.push_back(&unit);
    }
    if (::poll(files.data(), files.size(), kPollMilliseconds) <= 0) return;
    for (size_t n = 0; n < files.size(); ++n) {
      if (files[n].revents == 0) continue;
      if (!running[n]->worker->read()) {
        finish(*running[n]);
      } else if (running[n]->worker->report().total > 0) {
        running[n]->report = running[n]->worker->report();
      }
    }
  }

  void exchange_files() {
    if ((!is_launched() && !options_.writes) || Clock::now() - exchanged_ < kBetweenFiles) return;
    exchanged_ = Clock::now();
    for (Unit& unit : units_) {
      if (unit.state != State::kRunning) continue;
      if (is_launched()) {
        unit.report = read_progress(unit.arm.folder);
      } else if (unit.report.total > 0) {
        write_progress(unit.arm.folder, unit.report);
      }
    }
  }

  void finish(Unit& unit) {
    std::string why;
    const Ending ending = unit.worker->finish(why);
    const std::string said = unit.worker->said();
    unit.worker.reset();
    if (is_launched() || options_.writes) forget_messages(unit.arm.folder);
    if (ending == Ending::kCannotWrite) {
      unit.state = State::kWaiting;
      if (end_.cannot_write.empty()) end_.cannot_write = unit.arm.name + ": " + said;
    } else if (ending == Ending::kBusy) {
      busy(unit, said.empty() ? last_line(log(unit)) : said);
    } else if (ending == Ending::kStopped && !stopping()) {  // by FOLDER/stop, or elsewhere
      end_.arm_stopped = true;
      busy(unit, is_launched() ? last_line(log(unit)) : "it was stopped; what it has done is kept");
    } else if (ending == Ending::kStopped ||
               (ending == Ending::kFailed && interruptions_.count() > 0)) {
      unit.state = State::kWaiting;
    } else if (ending == Ending::kFailed && !said.empty()) {
      failed(unit, said);
    } else if (ending == Ending::kFailed) {
      failed(unit, fmt::format("{}; {} says: {}", why, log(unit).string(), last_line(log(unit))));
    } else if (!is_done(unit.arm)) {
      failed(unit, "ended without a result");
    } else {
      unit.state = State::kDone;
      more_done_ = true;
      progress_.say(
          fmt::format("{} done ({} of {})", unit.arm.name, count(State::kDone), units_.size()));
    }
  }

  void say_results() {
    if (!more_done_ || stopping() || !options_.on_done) return;
    more_done_ = false;
    const std::string lines = options_.on_done();
    if (!lines.empty()) progress_.say(lines);
  }

  void failed(Unit& unit, const std::string& why) {
    unit.state = State::kFailed;
    unit.found_done = unit.arm.work;  // the rest will not be done
    end_.failures.push_back(unit.arm.name + ": " + why);
    progress_.say(unit.arm.name + " failed: " + why);
  }

  void busy(Unit& unit, const std::string& why) {
    unit.state = State::kBusy;
    unit.found_done = unit.arm.work;  // the rest is not for this schedule
    end_.busy.push_back(unit.arm.name + ": " + why);
    progress_.say(unit.arm.name + " is left out: " + why);
  }

  void stop() {
    const auto now = Clock::now();
    const bool first = !asked_;
    if (first) {
      asked_ = true;
      deadline_ = now + (is_launched() ? kLaunchedPatience : kPatience);
      progress_.say(end_.cannot_write.empty()
                        ? "stopping: saving what is done (once more to stop at once)"
                        : "stopping: " + end_.cannot_write);
    }
    const bool at_once = interruptions_.count() > 1 || now > deadline_;
    if (!first && !at_once) return;
    for (const Unit& unit : units_)
      if (unit.state == State::kRunning) stop(unit, at_once);
  }

  // A launcher that is sent SIGTERM can end its step, SIGKILL it cannot handle.
  void stop(const Unit& unit, bool at_once) const {
    if (is_launched() && !at_once) {
      ask_to_stop(unit.arm.folder);
    } else {
      unit.worker->send(at_once && !is_launched() ? SIGKILL : SIGTERM);
    }
  }

  void show() {
    Progress::Work work;
    std::string now;
    for (Unit& unit : units_) {
      work.total += unit.arm.work;
      work.found_done += unit.found_done;
      if (unit.state != State::kWaiting && unit.state != State::kRunning)
        work.done += unit.arm.work;
      if (unit.state != State::kRunning) continue;
      if (unit.report.total > 0) {
        const double unit_done =
            unit.arm.work * std::min(1.0, unit.report.done / unit.report.total);
        if (!unit.reported) unit.found_done = unit_done;
        unit.reported = true;
        work.done += unit_done;
      }
      now += (now.empty() ? "" : " | ") + unit.arm.name + " " + unit.report.text;
    }
    progress_.show(work, now);
  }

  const ScheduleOptions& options_;
  const Interruptions interruptions_;
  std::vector<Unit> units_;
  ScheduleEnd end_;
  Progress progress_;
  bool more_done_ = false;                   // since the last call of on_done
  bool waits_ = false, said_waits_ = false;  // for weights of arms that are not among the units
  bool asked_ = false;
  Clock::time_point deadline_, exchanged_;
};

}  // namespace

bool is_done(const ScheduledArm& arm) { return fs::exists(arm.folder / arm.done_file); }

ScheduleEnd run_arms(std::span<const ScheduledArm> arms, const ScheduleOptions& options) {
  return Schedule(arms, options).run();
}

}  // namespace sextant::lab
