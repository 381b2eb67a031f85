// The steps of one training on all ranks. Its state is saved at intervals, and a training that goes
// on ends with the bits of one without a stop.
#include "sextant/lab/torch/train_arm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/read_file.h"
#include "sextant/lab/run/hand_out.h"
#include "sextant/lab/run/print.h"
#include "sextant/lab/run/training_state.h"
#include "sextant/lab/torch/batches.h"
#include "sextant/lab/torch/trainer.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

// The bytes of rank 0, on all ranks.
std::string of_rank_0(const Group& group, std::string bytes) {
  const at::Tensor size = at::full({1}, static_cast<int64_t>(bytes.size()), at::kLong);
  group.broadcast({size});
  const at::Tensor content = at::empty({size.item<int64_t>()}, at::kByte);
  if (group.rank() == 0) std::memcpy(content.data_ptr(), bytes.data(), bytes.size());
  group.broadcast({content});
  if (group.rank() == 0) return bytes;
  return {static_cast<const char*>(content.data_ptr()), content.nbytes()};
}

Batches batches_of(const ArmTask& task, const TrainingOptions& training) {
  if (!is_on_text(task.arm.task)) return small_batches(task.arm.task, training, task.arm.seed);
  if (task.arm.two_streams) return permuted_batches(training, task.corpus, task.arm.seed);
  if (task.arm.task == Task::kMasked) return masked_batches(training, task.corpus, task.arm.seed);
  return text_batches(training, task.corpus, task.arm.seed, task.arm.memory > 0);
}

class ArmTraining {
 public:
  ArmTraining(const ArmTask& task, Decoder& decoder, const Group& group, const fs::path& directory,
              const Watch& watch, ArmResult& result)
      : task_(task),
        training_(training_of(task.settings, task.arm)),
        group_(group),
        directory_(directory),
        watch_(watch),
        result_(result),
        trainer_(training_, batches_of(task, training_), decoder, task.arm.memory, group) {}

  void run() {
    check_same_task();
    resume();
    report();
    const int64_t steps = training_.steps();
    saved_ = Clock::now();
    while (trainer_.step() < steps) {
      Requests requests = advance();
      if (result_.diverged) return;
      const bool last = trainer_.step() == steps;
      if (trainer_.step() % kTrainLossSteps == 0 || last) report();
      if (group_.size() == 1) requests = own_requests();  // there is no rank to agree with
      if (!requests.stop && !requests.save && !last) continue;
      save();
      saved_ = Clock::now();
      if (requests.stop) stop();
    }
  }

 private:
  bool leads() const { return group_.rank() == 0; }

  void check_same_task() const {
    if (of_rank_0(group_, task_.belongs_to) == task_.belongs_to) return;
    fail(fmt::format(
        "training: rank {}: expected the plan and the text of rank 0, but its own differ",
        group_.rank()));
  }

  void resume() {
    std::optional<TrainingState> state;
    if (leads()) {
      std::vector<std::string> remarks;
      state = newest_training_state(directory_, task_.belongs_to, remarks);
      for (const std::string& remark : remarks) note(remark);
    }
    if (group_.size() > 1) state = agreed_state(std::move(state));
    if (!state) return;
    trainer_.restore(*state);
    if (trainer_.step() == 0) return;
    const json history = json::parse(state->sections.back().second);
    JsonFields fields(history, "checkpoint: history");
    fields.read("train_loss", result_.train_loss);
    fields.read("loss_sum", loss_sum_);
    fields.read("train_seconds", result_.train_seconds);
    fields.finish();
    if (leads()) note(fmt::format("going on at step {}", trainer_.step()));
  }

  // The checkpoint of rank 0. If it has none, its initial state: another kind of processor might
  // round initial weights differently.
  std::optional<TrainingState> agreed_state(std::optional<TrainingState> own) {
    if (!own) trainer_.save(own.emplace());
    return parse_training_state(of_rank_0(group_, leads() ? training_state_file(*own) : ""));
  }

  Requests own_requests() const {
    return {.stop = watch_.stop != nullptr && *watch_.stop != 0,
            .save = leads() && seconds_since(saved_) >= watch_.seconds_between_checkpoints};
  }

  Requests advance() {
    const Clock::time_point start = Clock::now();
    const Trainer::Step step = trainer_.advance([this] { return own_requests(); });
    result_.train_seconds += seconds_since(start);
    if (!std::isfinite(step.loss)) {
      result_.diverged = true;
      result_.message = fmt::format("step {}: loss or gradient is {}", trainer_.step(), step.loss);
      if (leads()) note(result_.message);
      return {};
    }
    loss_sum_ += step.loss;
    if (trainer_.step() % kTrainLossSteps == 0) {
      result_.train_loss.push_back(loss_sum_ / kTrainLossSteps);
      loss_sum_ = 0;
    }
    return step.requests;
  }

  void save() const {
    TrainingState state{.belongs_to = task_.belongs_to};
    trainer_.save(state);
    if (!leads()) return;
    const json history{{"train_loss", result_.train_loss},
                       {"loss_sum", loss_sum_},
                       {"train_seconds", result_.train_seconds}};
    state.sections.emplace_back("history", history.dump());
    save_training_state(state, directory_);
  }

  // Ranks end after rank 0 has saved: torchrun kills the others when one ends early.
  [[noreturn]] void stop() const {
    group_.broadcast({at::full({1}, 0.0)});
    throw Stopped{};
  }

  void report() const {
    const int64_t step = trainer_.step(), steps = training_.steps();
    const double share = static_cast<double>(step) / static_cast<double>(steps);
    const std::vector<double>& losses = result_.train_loss;
    const std::string loss = losses.empty() ? "" : fmt::format(" loss {:.2f}", losses.back());
    watch_.report({.done = share * training_work(task_),
                   .total = work_of(task_.settings, task_.arm),
                   .text = fmt::format("step {}/{}{}", step, steps, loss)});
  }

  const ArmTask& task_;
  TrainingOptions training_;
  const Group& group_;
  const fs::path& directory_;
  const Watch& watch_;
  ArmResult& result_;
  Trainer trainer_;
  Clock::time_point saved_;
  double loss_sum_ = 0;  // over the steps since the last mean in result_.train_loss
};

}  // namespace

ArmTask task_of(const json& file, const std::string& what, const fs::path& directory) {
  JsonFields fields(file, what);
  ArmTask task;
  naming_file(what, [&] {
    task.arm = fields.at("arm").get<Arm>();
    task.settings = fields.at("settings").get<Settings>();
  });
  const json& text = fields.at("text");
  std::vector<std::string> files;
  fields.read("files", files);
  fields.finish();
  std::vector<fs::path> paths;
  for (const std::string& path : files) paths.push_back(directory / path);  // absolute ones stay
  task.corpus = read_corpus(paths, task.settings.test.share);
  if (identity(task.corpus) != text)
    fail("text: expected " + text.dump() + ", but the files now hold " +
         identity(task.corpus).dump());
  task.belongs_to = json{{"arm", task.arm}, {"settings", task.settings}, {"text", text}}.dump();
  return task;
}

ArmTask read_task(const fs::path& directory) {
  return task_of(read_json(directory / kArmFile), (directory / kArmFile).string(), directory);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double training_work(const ArmTask& task) {
  Arm tested = task.arm;
  tested.weights_from = "another";
  tested.tune = 0;
  return work_of(task.settings, task.arm) - work_of(task.settings, tested);
}

void train_arm(const ArmTask& task, Decoder& decoder, const Group& group, const fs::path& directory,
               const Watch& watch, ArmResult& result) {
  ArmTraining(task, decoder, group, directory, watch, result).run();
}

}  // namespace sextant::lab
