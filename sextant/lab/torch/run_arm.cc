#include "sextant/lab/torch/run_arm.h"

#include <ATen/Context.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/own_methods.h"
#include "sextant/lab/report/result.h"
#include "sextant/lab/run/checkpoint.h"
#include "sextant/lab/run/progress.h"
#include "sextant/lab/run/survey_arms.h"
#include "sextant/lab/torch/accuracy.h"
#include "sextant/lab/torch/attention_entropy.h"
#include "sextant/lab/torch/batches.h"
#include "sextant/lab/torch/encoding_samples.h"
#include "sextant/lab/torch/evaluate.h"
#include "sextant/lab/torch/model_folder.h"
#include "sextant/lab/torch/own_method.h"
#include "sextant/lab/torch/trained_products.h"
#include "sextant/lab/torch/trainer.h"
#include "sextant/torch/methods/shared/dropped_channels.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct Stopped {};  // thrown when an arm was told to stop and is ready to

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

// The content of arm.json.
struct Assignment {
  Arm arm;
  Settings settings;
  Corpus corpus;
  std::string belongs_to;
};

Assignment read_task(const fs::path& directory) {
  const json file = read_json(directory / kArmFile);
  JsonFields fields(file, (directory / kArmFile).string());
  Assignment task;
  task.arm = fields.at("arm").get<Arm>();
  task.settings = fields.at("settings").get<Settings>();
  const json& text = fields.at("text");
  std::vector<std::string> files;
  fields.read("files", files);
  fields.finish();
  std::vector<fs::path> paths;
  for (const std::string& path : files) paths.push_back(directory / path);  // absolute ones stay
  task.corpus = read_corpus(paths, task.settings.test.share);
  if (identity(task.corpus) != text) {
    fail("text: expected " + text.dump() + ", but the files now hold " +
         identity(task.corpus).dump());
  }
  task.belongs_to = json{{"arm", task.arm}, {"settings", task.settings}, {"text", text}}.dump();
  return task;
}

// Removes files by extension: ".sxt", or ".XXXXXX" of temporary files left by a killed write.
void remove_files(const fs::path& directory, const auto& ends_so) {
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (ends_so(entry.path().extension().string())) fs::remove(entry.path());
  }
}

class ArmRun {
 public:
  ArmRun(const fs::path& directory, const Watch& watch)
      : directory_(directory),
        watch_(watch),
        task_(read_task(directory)),
        training_(training_of(task_.settings, task_.arm)),
        length_(training_of(task_.settings, task_.arm.task).length),
        decoder_(model_of(task_.settings, task_.arm), method_of(task_.arm, task_.settings),
                 task_.arm.seed) {
    result_.arm = task_.arm;
    result_.weights = decoder_.weights();
    result_.machine = processor() + ", libtorch " TORCH_VERSION;
  }

  void run() {
    remove_files(directory_, [](const std::string& ending) { return ending.size() == 7; });
    if (!task_.arm.weights_from.empty()) {
      read_weights(decoder_, directory_.parent_path() / folder_name(task_.arm.weights_from));
    }
    if (task_.arm.trains()) train();
    if (!result_.diverged) test();
    write_json(directory_ / kResultFile, result_);
    remove_files(directory_, [](const std::string& ending) { return ending == ".sxt"; });
  }

 private:
  void train() {
    Trainer trainer(training_, batches(), decoder_, task_.arm.memory);
    resume(trainer);
    report_training(trainer.step());
    const int64_t steps = training_.steps();
    Clock::time_point saved = Clock::now();
    while (trainer.step() < steps) {
      advance(trainer);
      if (result_.diverged) return;
      if (trainer.step() % kTrainLossSteps == 0 || trainer.step() == steps) {
        report_training(trainer.step());
      }
      const bool stop = watch_.stop != nullptr && *watch_.stop != 0;
      if (!stop && trainer.step() < steps &&
          seconds_since(saved) < watch_.seconds_between_checkpoints) {
        continue;
      }
      save(trainer);
      saved = Clock::now();
      if (stop) throw Stopped{};
    }
    write_model({.model = decoder_.options(),
                 .method = task_.arm.method,
                 .options = task_.arm.options,
                 .memory = task_.arm.memory,
                 .train_length = length_},
                decoder_, directory_);
  }

  Batches batches() const {
    if (!is_on_text(task_.arm.task)) {
      return small_batches(task_.arm.task, training_, task_.arm.seed);
    }
    if (task_.arm.two_streams) {
      return permuted_batches(training_, task_.corpus, task_.arm.seed);
    }
    if (task_.arm.task == Task::kMasked) {
      return masked_batches(training_, task_.corpus, task_.arm.seed);
    }
    return text_batches(training_, task_.corpus, task_.arm.seed, task_.arm.memory > 0);
  }

  void advance(Trainer& trainer) {
    const Clock::time_point start = Clock::now();
    const double loss = trainer.advance();
    result_.train_seconds += seconds_since(start);
    if (!std::isfinite(loss)) {
      result_.diverged = true;
      result_.message = fmt::format("step {}: loss or gradient is {}", trainer.step(), loss);
      note(result_.message);
      return;
    }
    loss_sum_ += loss;
    if (trainer.step() % kTrainLossSteps != 0) return;
    result_.train_loss.push_back(loss_sum_ / kTrainLossSteps);
    loss_sum_ = 0;
  }

  void save(const Trainer& trainer) const {
    Checkpoint checkpoint{.belongs_to = task_.belongs_to};
    trainer.save(checkpoint);
    const json history{{"train_loss", result_.train_loss},
                       {"loss_sum", loss_sum_},
                       {"train_seconds", result_.train_seconds}};
    checkpoint.sections.emplace_back("history", history.dump());
    save_checkpoint(checkpoint, directory_);
  }

  void resume(Trainer& trainer) {
    std::vector<std::string> remarks;
    const std::optional<Checkpoint> checkpoint =
        newest_checkpoint(directory_, task_.belongs_to, remarks);
    for (const std::string& remark : remarks) note(remark);
    if (!checkpoint) return;
    trainer.restore(*checkpoint);
    const json history = json::parse(checkpoint->sections.back().second);
    JsonFields fields(history, "checkpoint: history");
    fields.read("train_loss", result_.train_loss);
    fields.read("loss_sum", loss_sum_);
    fields.read("train_seconds", result_.train_seconds);
    fields.finish();
    note(fmt::format("going on at step {}", trainer.step()));
  }

  void test() {
    const TestOptions& options = task_.settings.test;
    const Clock::time_point start = Clock::now();
    const auto tested = [&](int64_t part, int64_t parts) {
      report_testing(part, parts);
      if (watch_.stop != nullptr && *watch_.stop != 0) throw Stopped{};
    };
    if (!is_on_text(task_.arm.task)) {
      result_.retrieval = accuracies(decoder_, task_.arm.task, task_.settings.retrieval, tested);
    } else {
      const std::vector<std::string_view> blocks =
          test_blocks(task_.corpus, options.longest(), options.blocks);
      const Scoring scoring =
          survey_scoring(length_, task_.arm.memory, task_.arm.task == Task::kMasked);
      const Evaluation evaluation = evaluate(decoder_, blocks, options, scoring,
                                             [&](int64_t block) { tested(block, options.blocks); });
      result_.lengths = evaluation.lengths;
      result_.loss_at = evaluation.loss_at;
      // Statistics of two streams would be those of the content stream, which predicts nothing.
      if (task_.arm.memory == 0 && !task_.arm.two_streams) {
        const bool draws = task_.arm.seed == 0;
        if (draws) draw();
        if (task_.arm.weights_from.empty()) measure_products(draws);
        result_.attention =
            attention_entropy(decoder_, method_of(task_.arm, task_.settings), blocks, options,
                              length_, draws ? &result_.pictures : nullptr);
      }
    }
    result_.test_seconds = seconds_since(start);
  }

  void draw() {
    const std::unique_ptr<Method> method = method_of(task_.arm, task_.settings);
    const ModelShape shape = model_shape(model_of(task_.settings, task_.arm), length_);
    result_.pictures = pictures_of(decoder_, *method, shape, task_.settings.test.longest());
  }

  // Decoders with the same seed begin with the same weights.
  void measure_products(bool draws) {
    const DecoderOptions model = model_of(task_.settings, task_.arm);
    const Decoder untrained(model, method_of(task_.arm, task_.settings), task_.arm.seed);
    result_.positions =
        trained_products(decoder_, untrained, *method_of(task_.arm, task_.settings),
                         model_shape(model, length_), draws ? &result_.pictures : nullptr);
  }

  void report_training(int64_t step) const {
    const int64_t steps = training_.steps();
    const double share = static_cast<double>(step) / static_cast<double>(steps);
    const std::vector<double>& losses = result_.train_loss;
    const std::string loss = losses.empty() ? "" : fmt::format(" loss {:.2f}", losses.back());
    watch_.report({.done = share * training_work(),
                   .total = work_of(task_.settings, task_.arm),
                   .text = fmt::format("step {}/{}{}", step, steps, loss)});
  }

  void report_testing(int64_t part, int64_t parts) const {
    const double total = work_of(task_.settings, task_.arm), trained = training_work();
    const double share = static_cast<double>(part) / static_cast<double>(parts);
    watch_.report({.done = trained + share * (total - trained),
                   .total = total,
                   .text = fmt::format("test {}/{}", part, parts)});
  }

  double training_work() const {
    Arm tested = task_.arm;
    tested.weights_from = "another";
    tested.tune = 0;
    return work_of(task_.settings, task_.arm) - work_of(task_.settings, tested);
  }

  fs::path directory_;
  const Watch& watch_;
  Assignment task_;
  TrainingOptions training_;
  int64_t length_;  // L: the length of the method, which tuning exceeds
  Decoder decoder_;
  ArmResult result_;
  double loss_sum_ = 0;  // over the steps since the last mean in result_.train_loss
};

}  // namespace

std::unique_ptr<Method> method_of(const Arm& arm, const Settings& settings) {
  const ModelShape shape =
      model_shape(model_of(settings, arm), training_of(settings, arm.task).length);
  std::unique_ptr<Method> method = is_own_method(arm.method)
                                       ? own_method(arm.method, shape, arm.options, arm.seed)
                                       : make_method(arm.method, shape, json::parse(arm.options));
  if (arm.memory > 0 && !method->relative())
    fail(fmt::format("{}: memory: expected 0, as {} goes by absolute positions, but got {}",
                     arm.label, arm.method, arm.memory));
  if (arm.drop_channels == 0) return method;
  try {
    return with_dropped_channels(std::move(method), shape, arm.drop_channels, arm.seed);
  } catch (const Error& error) {
    fail(arm.label + ": " + error.what());
  }
}

Ending run_arm(const fs::path& directory, const Watch& watch) {
  // The moments of bytes that never occur decay into slow denormal numbers.
  at::globalContext().setFlushDenormal(true);
  try {
    ArmRun(directory, watch).run();
  } catch (const Stopped&) {
    return Ending::kStopped;
  }
  return Ending::kDone;
}

}  // namespace sextant::lab
