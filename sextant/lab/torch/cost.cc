#include "sextant/lab/torch/cost.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "sextant/lab/run/survey_arms.h"
#include "sextant/lab/torch/device.h"
#include "sextant/lab/torch/trainer.h"

namespace sextant::lab {
namespace {

constexpr int64_t kMostTokens = 1 << 12;  // in one forward pass
constexpr int kSteps = 4;                 // timed, after one untimed step

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

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
