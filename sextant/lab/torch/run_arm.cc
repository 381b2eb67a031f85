// An arm trains or reads its weights, is measured, and writes its result last; what a killed run
// has left is removed then.
#include "sextant/lab/torch/run_arm.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/own_methods.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/hand_out.h"
#include "sextant/lab/torch/attention_entropy.h"
#include "sextant/lab/torch/device.h"
#include "sextant/lab/torch/evaluate.h"
#include "sextant/lab/torch/model_folder.h"
#include "sextant/lab/torch/own_method.h"
#include "sextant/lab/torch/probe_encoding.h"
#include "sextant/lab/torch/train_arm.h"
#include "sextant/lab/torch/trainer.h"
#include "sextant/torch/methods/shared/dropped_channels.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

// Removes files by extension: ".sxt", or ".XXXXXX" of temporary files left by a killed write.
void remove_files(const fs::path& directory, const auto& ends_so) {
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    if (ends_so(entry.path().extension().string())) fs::remove(entry.path());
}

c10::Device device_of(const ArmTask& task, const Watch& watch) {
  const std::string& name = watch.device.empty() ? task.settings.device : watch.device;
  check_device_of(task.arm, name);
  return device_named(name);
}

class ArmRun {
 public:
  ArmRun(const fs::path& directory, const Watch& watch, Group group)
      : directory_(directory),
        watch_(watch),
        group_(std::move(group)),
        task_(read_task(directory)),
        device_(device_of(task_, watch)),
        length_(training_of(task_.settings, task_.arm.task).length),
        decoder_(model_of(task_.settings, task_.arm), method_of(task_.arm, task_.settings),
                 task_.arm.seed) {
    result_.arm = task_.arm;
    result_.weights = decoder_.weights();
    result_.machine = processor() + (device_.is_cpu() ? "" : ", " + gpu_name(device_)) +
                      ", libtorch " TORCH_VERSION;
    decoder_.move_to(device_);
  }

  void run() {
    remove_files(directory_, [](const std::string& ending) { return ending.size() == 7; });
    if (!task_.arm.weights_from.empty())
      read_weights(decoder_, directory_.parent_path() / folder_name(task_.arm.weights_from));
    if (task_.arm.trains()) train();
    if (!result_.diverged) test();
    write_json(directory_ / kResultFile, result_);
    remove_files(directory_, [](const std::string& ending) { return ending == ".sxt"; });
  }

 private:
  void train() {
    train_arm(task_, decoder_, group_, directory_, watch_, result_);
    if (result_.diverged) return;
    write_model({.model = decoder_.options(),
                 .method = task_.arm.method,
                 .options = task_.arm.options,
                 .memory = task_.arm.memory,
                 .train_length = length_},
                decoder_, directory_);
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
      // The statistics are computed on the CPU: their matrices of weights have a column for each
      // key, more than the kernels of GPUs take.
      decoder_.move_to(at::kCPU);
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

  void report_testing(int64_t part, int64_t parts) const {
    const double total = work_of(task_.settings, task_.arm), trained = training_work(task_);
    const double share = static_cast<double>(part) / static_cast<double>(parts);
    watch_.report({.done = trained + share * (total - trained),
                   .total = total,
                   .text = fmt::format("test {}/{}", part, parts)});
  }

  fs::path directory_;
  const Watch& watch_;
  Group group_;  // of which this is rank 0
  ArmTask task_;
  c10::Device device_;
  int64_t length_;  // L: the length of the method, which tuning exceeds
  Decoder decoder_;
  ArmResult result_;
};

constexpr int64_t kMostTokens = 1 << 12;  // in one forward pass
constexpr int kSteps = 4;                 // timed, after one untimed step

double seconds_of(const auto& work) {
  const Clock::time_point start = Clock::now();
  work();
  return seconds_since(start);
}

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

Ending join_training(const std::string& file, const Watch& watch) {
  at::globalContext().setFlushDenormal(true);
  const Group group = Group::from_environment();
  const ArmTask task = task_of(json::parse(file), "training", "");
  Decoder decoder(model_of(task.settings, task.arm), method_of(task.arm, task.settings),
                  task.arm.seed);
  ArmResult unused;
  try {
    train_arm(task, decoder, group, "", watch, unused);
  } catch (const Stopped&) {
    return Ending::kStopped;
  }
  return Ending::kDone;
}

Ending run_arm(const fs::path& directory, const Watch& watch) {
  // The moments of bytes that never occur decay into slow denormal numbers.
  at::globalContext().setFlushDenormal(true);
  try {
    ArmRun(directory, watch, watch.grouped ? Group::from_environment() : Group()).run();
  } catch (const Stopped&) {
    return Ending::kStopped;
  }
  return Ending::kDone;
}

ArmCost cost_of_arm(const Settings& settings, Task task) {
  at::globalContext().setFlushDenormal(true);
  const c10::Device device = device_named(settings.device);
  const TrainingOptions training = training_of(settings, task);
  const DecoderOptions model = model_of(settings, task);
  Decoder decoder(
      model, make_method("rope", model_shape(model, training.length), nlohmann::json::object()), 0);
  decoder.move_to(device);
  const auto tokens = [](int64_t rows, int64_t length) {
    return at::full({rows, length}, 1, at::kLong);
  };
  Trainer trainer(
      training,
      [&](int64_t) {
        return Batch{tokens(training.batch, training.length),
                     tokens(training.batch, training.length)};
      },
      decoder);
  trainer.advance();
  ArmCost cost;
  cost.step_seconds = seconds_of([&] {
                        for (int n = 0; n < kSteps; ++n) trainer.advance();
                      }) /
                      kSteps;
  // Tests process the same number of tokens at each length, and the longest length is the slowest,
  // so this is an upper bound.
  const at::NoGradGuard no_gradients;
  const int64_t longest = longest_of(settings, task);
  const at::Tensor text = tokens(std::max<int64_t>(1, kMostTokens / longest), longest);
  const auto read = [&] {
    const at::Tensor logits =
        task == Task::kPairs ? decoder.last_logits(text) : decoder.logits(text);
    if (!device.is_cpu()) logits.sum().item<float>();  // waits for the device
  };
  read();
  cost.test_seconds =
      seconds_of(read) * test_tokens(settings, task) / static_cast<double>(text.numel());
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  cost.bytes = int64_t{usage.ru_maxrss} * 1024;
  return cost;
}

}  // namespace sextant::lab
