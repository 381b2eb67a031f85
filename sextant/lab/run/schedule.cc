#include "sextant/lab/run/schedule.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "sextant/files/write_file.h"
#include "sextant/lab/data/masked_text.h"
#include "sextant/lab/report/result.h"
#include "sextant/lab/run/interruptions.h"
#include "sextant/lab/run/last_line.h"
#include "sextant/lab/run/progress.h"
#include "sextant/lab/run/worker.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

constexpr int kPollMilliseconds = 100;
constexpr std::chrono::seconds kPatience{20};  // time for workers to save before they are killed

// Multiplications per token, which approximate its cost.
double weights_read(const DecoderOptions& model) {
  return static_cast<double>(model.layers * (4 * model.width + 2 * model.mlp_width) * model.width +
                             model.width * model.vocabulary);
}

class Schedule {
 public:
  Schedule(const Settings& settings, std::span<const Arm> arms, const ScheduleOptions& options)
      : options_(options) {
    for (const Arm& arm : arms) {
      const State state = is_done(options.directory, arm) ? State::kDone : State::kWaiting;
      const double work = work_of(settings, arm);
      units_.push_back({.arm = arm,
                        .work = work,
                        .found_done = state == State::kDone ? work : 0,
                        .state = state,
                        .worker = {}});
    }
  }

  ScheduleEnd run() {
    while (true) {
      if (!stopping()) start_what_can();
      if (count(State::kRunning) == 0) break;
      say_results();
      wait();
      if (stopping()) stop();
      show();
    }
    end_.stopped = stopping() && count(State::kWaiting) > 0;
    return end_;
  }

 private:
  enum class State { kWaiting, kRunning, kDone, kFailed };
  struct Unit {
    Arm arm;
    double work = 0;
    double found_done = 0;  // the part of `work` that an earlier run did
    State state = State::kWaiting;
    std::unique_ptr<Worker> worker;
    bool reported = false;  // the first report tells where the arm resumes
  };

  // After a signal, or after a failed write.
  bool stopping() const { return interruptions_.count() > 0 || !end_.cannot_write.empty(); }

  int64_t count(State state) const { return std::ranges::count(units_, state, &Unit::state); }

  fs::path directory(const Unit& unit) const { return arm_directory(options_.directory, unit.arm); }

  void start_what_can() {
    for (Unit& unit : units_) {
      if (count(State::kRunning) >= options_.jobs || stopping()) return;
      if (unit.state != State::kWaiting) continue;
      switch (state_of_weights(unit.arm)) {
        case State::kDone:
          start(unit);
          break;
        case State::kFailed:
          failed(unit, "needs the weights of " + unit.arm.weights_from + ", which failed");
          break;
        default:
          break;
      }
    }
  }

  State state_of_weights(const Arm& arm) const {
    if (arm.weights_from.empty()) return State::kDone;
    for (const Unit& unit : units_) {
      if (unit.arm.name() == arm.weights_from) return unit.state;
    }
    return State::kFailed;
  }

  void start(Unit& unit) {
    std::vector<std::string> command = options_.worker;
    command.push_back(directory(unit).string());
    try {
      unit.worker = std::make_unique<Worker>(command, directory(unit) / kLogFile);
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
      if (files[n].revents != 0 && !running[n]->worker->read()) finish(*running[n]);
    }
  }

  void finish(Unit& unit) {
    std::string why;
    const Ending ending = unit.worker->finish(why);
    const std::string said = unit.worker->said();
    unit.worker.reset();
    if (ending == Ending::kCannotWrite) {
      unit.state = State::kWaiting;
      if (end_.cannot_write.empty()) end_.cannot_write = unit.arm.name() + ": " + said;
    } else if (ending == Ending::kStopped ||
               (ending == Ending::kFailed && interruptions_.count() > 0)) {
      unit.state = State::kWaiting;
    } else if (ending == Ending::kFailed && !said.empty()) {
      failed(unit, said);
    } else if (ending == Ending::kFailed) {
      const fs::path log = directory(unit) / kLogFile;
      failed(unit, fmt::format("{}; {} says: {}", why, log.string(), last_line(log)));
    } else if (!is_done(options_.directory, unit.arm)) {
      failed(unit, "ended without a result");
    } else {
      unit.state = State::kDone;
      more_done_ = true;
      progress_.say(
          fmt::format("{} done ({} of {})", unit.arm.name(), count(State::kDone), units_.size()));
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
    unit.found_done = unit.work;  // the rest will not be done
    end_.failures.push_back(unit.arm.name() + ": " + why);
    progress_.say(unit.arm.name() + " failed: " + why);
  }

  void stop() {
    const auto now = std::chrono::steady_clock::now();
    const bool first = !asked_;
    if (first) {
      asked_ = true;
      deadline_ = now + kPatience;
      progress_.say(end_.cannot_write.empty()
                        ? "stopping: saving what is done (once more to stop at once)"
                        : "stopping: " + end_.cannot_write);
    }
    const bool at_once = interruptions_.count() > 1 || now > deadline_;
    if (!first && !at_once) return;
    for (const Unit& unit : units_) {
      if (unit.state == State::kRunning) unit.worker->send(at_once ? SIGKILL : SIGTERM);
    }
  }

  void show() {
    Progress::Work work;
    std::string now;
    for (Unit& unit : units_) {
      work.total += unit.work;
      work.found_done += unit.found_done;
      if (unit.state == State::kDone || unit.state == State::kFailed) work.done += unit.work;
      if (unit.state != State::kRunning) continue;
      const Report& report = unit.worker->report();
      if (report.total > 0) {
        const double unit_done = unit.work * std::min(1.0, report.done / report.total);
        if (!unit.reported) unit.found_done = unit_done;
        unit.reported = true;
        work.done += unit_done;
      }
      now += (now.empty() ? "" : " | ") + unit.arm.name() + " " + report.text;
    }
    progress_.show(work, now);
  }

  const ScheduleOptions& options_;
  const Interruptions interruptions_;
  std::vector<Unit> units_;
  ScheduleEnd end_;
  Progress progress_;
  bool more_done_ = false;  // since the last call of on_done
  bool asked_ = false;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace

fs::path arm_directory(const fs::path& survey, const Arm& arm) {
  std::string folder = arm.name();
  for (size_t n = folder.find('/'); n != std::string::npos; n = folder.find('/')) {
    folder.replace(n, 1, "%2F");
  }
  return survey / "arms" / folder;
}

bool is_done(const fs::path& survey, const Arm& arm) {
  return fs::exists(arm_directory(survey, arm) / kResultFile);
}

double test_tokens(const Settings& settings, Task task) {
  if (is_on_text(task)) {
    double tokens = static_cast<double>(settings.test.blocks * settings.test.longest()) *
                    static_cast<double>(settings.test.lengths.size());
    if (task == Task::kText) return tokens;
    // Each pass over a masked window is a sequence of its own.
    for (const int64_t length : settings.test.lengths) {
      tokens += static_cast<double>(settings.test.blocks * length * kMaskPasses);
    }
    return tokens;
  }
  double tokens = 0;
  for (const int64_t length : settings.retrieval.lengths) {
    tokens += static_cast<double>(length * settings.retrieval.texts) *
              static_cast<double>(asked_distances(task, length, settings.retrieval).size());
  }
  return tokens;
}

double work_of(const Settings& settings, const Arm& arm) {
  // A training step costs about three times a forward pass.
  const auto train = static_cast<double>(3 * training_of(settings, arm).bytes);
  return weights_read(model_of(settings, arm)) / weights_read(settings.model) *
         ((arm.trains() ? train : 0) + test_tokens(settings, arm.task));
}

ScheduleEnd run_arms(const Settings& settings, std::span<const Arm> arms,
                     const ScheduleOptions& options) {
  return Schedule(settings, arms, options).run();
}

}  // namespace sextant::lab
