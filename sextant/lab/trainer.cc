#include "sextant/lab/trainer.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/types.h>
#include <torch/version.h>

// Includes nothing of what it uses.
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <string>
#include <utility>

#include "sextant/error.h"

namespace sextant::lab {
namespace {

using torch::optim::AdamW;
using torch::optim::AdamWOptions;
using torch::optim::AdamWParamState;

// What the optimiser files a parameter's moments under.
auto state_key(const at::Tensor& parameter) {
#if TORCH_VERSION_MAJOR >= 2 && (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 1)
  return static_cast<void*>(parameter.unsafeGetTensorImpl());
#else
  return c10::guts::to_string(parameter.unsafeGetTensorImpl());
#endif
}

// One group for each pair of learning rate and decay.
std::vector<torch::optim::OptimizerParamGroup> groups_of(const Decoder& decoder,
                                                         const TrainingOptions& options) {
  std::map<std::pair<double, bool>, std::vector<at::Tensor>> groups;
  for (const NamedParameter& parameter : decoder.parameters()) {
    groups[{parameter.learning_rate_scale, parameter.weight_decay}].push_back(parameter.value);
  }
  std::vector<torch::optim::OptimizerParamGroup> result;
  for (auto& [key, parameters] : groups) {
    auto group = std::make_unique<AdamWOptions>(options.learning_rate * key.first);
    group->betas({options.beta1, options.beta2});
    group->weight_decay(key.second ? options.weight_decay : 0);
    result.emplace_back(std::move(parameters), std::move(group));
  }
  return result;
}

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().contiguous();
  return {static_cast<const char*>(whole.data_ptr()), whole.nbytes()};
}

// A tensor like `like` with these bytes.
at::Tensor tensor_of(const std::string& bytes, const at::Tensor& like, const std::string& name) {
  at::Tensor tensor = at::empty(like.sizes(), like.options());
  if (bytes.size() != tensor.nbytes()) {
    fail("checkpoint: " + name + ": expected " + std::to_string(tensor.nbytes()) +
         " bytes, but got " + std::to_string(bytes.size()));
  }
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace

struct Trainer::Optimizer {
  Optimizer(const Decoder& decoder, const TrainingOptions& options)
      : adamw(groups_of(decoder, options), AdamWOptions(options.learning_rate)) {
    for (const auto& group : adamw.param_groups()) peaks.push_back(group.options().get_lr());
    // Moments that are there from the start can be saved and restored at any step.
    for (const NamedParameter& parameter : decoder.parameters()) {
      auto state = std::make_unique<AdamWParamState>();
      state->exp_avg(at::zeros_like(parameter.value));
      state->exp_avg_sq(at::zeros_like(parameter.value));
      adamw.state()[state_key(parameter.value)] = std::move(state);
    }
  }

  AdamWParamState& moments(const at::Tensor& parameter) {
    return static_cast<AdamWParamState&>(*adamw.state().at(state_key(parameter)));
  }

  AdamW adamw;
  std::vector<double> peaks;  // learning rate of each group
};

double learning_rate_at(const TrainingOptions& options, int64_t step) {
  const auto steps = static_cast<double>(options.steps());
  const double rising = options.warmup * steps, now = static_cast<double>(step) + 0.5;
  if (now < rising) return now / rising;
  return 0.5 * (1 + std::cos(std::numbers::pi * (now - rising) / (steps - rising)));
}

Trainer::Trainer(const TrainingOptions& options, Batches batches, Decoder& decoder, int64_t memory)
    : options_(options),
      batches_(std::move(batches)),
      decoder_(decoder),
      memory_{.limit = memory},
      optimizer_(std::make_unique<Optimizer>(decoder, options)) {}

Trainer::Trainer(const TrainingOptions& options, const Corpus& corpus, Decoder& decoder,
                 uint64_t seed, int64_t memory)
    : Trainer(options, text_batches(options, corpus, seed, memory > 0), decoder, memory) {}

Trainer::~Trainer() = default;

double Trainer::advance() {
  const Batch batch = batches_(step_);
  Memory memory = memory_;
  const at::Tensor logits = decoder_.logits(batch.tokens, memory);
  const at::Tensor targets = batch.targets.reshape({-1});
  const at::Tensor loss =
      at::cross_entropy_loss(logits.view({targets.size(0), logits.size(2)}), targets);
  const double value = loss.item<double>();
  if (!std::isfinite(value)) return value;

  std::vector<at::Tensor> parameters;
  for (const NamedParameter& parameter : decoder_.parameters()) {
    parameter.value.mutable_grad().reset();
    parameters.push_back(parameter.value);
  }
  loss.backward();
  const double norm = torch::nn::utils::clip_grad_norm_(parameters, options_.clip);
  if (!std::isfinite(norm)) return norm;
  auto& groups = optimizer_->adamw.param_groups();
  for (size_t n = 0; n < groups.size(); ++n) {
    groups[n].options().set_lr(optimizer_->peaks[n] * learning_rate_at(options_, step_));
  }
  optimizer_->adamw.step();
  memory_ = std::move(memory);
  ++step_;
  return value;
}

void Trainer::save(Checkpoint& checkpoint) const {
  checkpoint.step = step_;
  for (const NamedParameter& parameter : decoder_.parameters()) {
    AdamWParamState& moments = optimizer_->moments(parameter.value);
    checkpoint.sections.emplace_back("weight/" + parameter.name, bytes_of(parameter.value));
    checkpoint.sections.emplace_back("moment1/" + parameter.name, bytes_of(moments.exp_avg()));
    checkpoint.sections.emplace_back("moment2/" + parameter.name, bytes_of(moments.exp_avg_sq()));
  }
  for (size_t n = 0; n < memory_.layers.size(); ++n) {
    checkpoint.sections.emplace_back("memory/" + std::to_string(n), bytes_of(memory_.layers[n]));
  }
}

void Trainer::restore(const Checkpoint& checkpoint) {
  std::map<std::string, const std::string*> sections;
  for (const auto& [name, bytes] : checkpoint.sections) sections[name] = &bytes;
  const auto read = [&](const std::string& name, const at::Tensor& like) {
    const auto found = sections.find(name);
    if (found == sections.end()) fail("checkpoint: " + name + ": expected it, but it is missing");
    return tensor_of(*found->second, like.detach(), name);
  };
  struct Restored {
    at::Tensor weight, moment1, moment2;
  };
  std::vector<Restored> restored;
  for (const NamedParameter& parameter : decoder_.parameters()) {
    restored.push_back({read("weight/" + parameter.name, parameter.value),
                        read("moment1/" + parameter.name, parameter.value),
                        read("moment2/" + parameter.name, parameter.value)});
  }
  Memory memory{.limit = memory_.limit};
  const int64_t positions = std::min(memory.limit, checkpoint.step * options_.length);
  const at::Tensor one = at::empty({options_.batch, positions, decoder_.options().width});
  for (int64_t n = 0; positions > 0 && n < decoder_.options().layers; ++n) {
    memory.layers.push_back(read("memory/" + std::to_string(n), one));
  }
  for (size_t n = 0; n < restored.size(); ++n) {
    const at::Tensor& value = decoder_.parameters()[n].value;
    value.detach().copy_(restored[n].weight);
    AdamWParamState& moments = optimizer_->moments(value);
    moments.step(checkpoint.step);
    moments.exp_avg(restored[n].moment1);
    moments.exp_avg_sq(restored[n].moment2);
  }
  memory_ = std::move(memory);
  step_ = checkpoint.step;
}

}  // namespace sextant::lab
