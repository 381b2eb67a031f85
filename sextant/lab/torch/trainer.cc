#include "sextant/lab/torch/trainer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/dense/adamw.h"
#include "sextant/torch/operators/executor.h"

namespace sextant::lab {
namespace {

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

// The norm of all gradients as one vector.
double gradient_norm(const std::vector<NamedParameter>& parameters) {
  double squares = 0;
  for (const NamedParameter& parameter : parameters) {
    if (!parameter.value.grad().defined()) continue;
    const at::Tensor gradient = parameter.value.grad().contiguous();
    squares +=
        dense::sum_of_squares(gradient.data_ptr<float>(), gradient.numel(), torch_executor());
  }
  return std::sqrt(squares);
}

}  // namespace

// The moments of AdamW, one pair per parameter in the decoder's order.
struct Trainer::Optimizer {
  struct Moments {
    at::Tensor first, second;
  };

  explicit Optimizer(const Decoder& decoder) {
    // Allocated at the start, so that they can be saved and restored at any step.
    for (const NamedParameter& parameter : decoder.parameters())
      moments.push_back({at::zeros_like(parameter.value), at::zeros_like(parameter.value)});
  }

  std::vector<Moments> moments;
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
      optimizer_(std::make_unique<Optimizer>(decoder)) {}

Trainer::Trainer(const TrainingOptions& options, const Corpus& corpus, Decoder& decoder,
                 uint64_t seed, int64_t memory)
    : Trainer(options, text_batches(options, corpus, seed, memory > 0), decoder, memory) {}

Trainer::~Trainer() = default;

double Trainer::advance() {
  const Batch batch = batches_(step_);
  Memory memory = memory_;
  const at::Tensor loss =
      (batch.order.defined() ? decoder_.permuted_losses(batch.tokens, batch.targets, batch.order)
                             : decoder_.losses(batch.tokens, batch.targets, memory))
          .mean();
  const double value = loss.item<double>();
  if (!std::isfinite(value)) return value;

  const std::vector<NamedParameter>& parameters = decoder_.parameters();
  for (const NamedParameter& parameter : parameters) parameter.value.mutable_grad().reset();
  loss.backward();
  const double norm = gradient_norm(parameters);
  if (!std::isfinite(norm)) return norm;
  dense::AdamW adamw{.beta1 = options_.beta1,
                     .beta2 = options_.beta2,
                     .step = step_ + 1,
                     .gradient_scale = std::min(1.0, options_.clip / (norm + 1e-6))};
  for (size_t n = 0; n < parameters.size(); ++n) {
    const NamedParameter& parameter = parameters[n];
    if (!parameter.value.grad().defined()) continue;
    adamw.rate =
        options_.learning_rate * parameter.learning_rate_scale * learning_rate_at(options_, step_);
    adamw.decay = parameter.weight_decay ? options_.weight_decay : 0;
    const at::Tensor gradient = parameter.value.grad().contiguous();
    const Optimizer::Moments& moments = optimizer_->moments[n];
    dense::advance(adamw,
                   {.weight = parameter.value.data_ptr<float>(),
                    .moment1 = moments.first.data_ptr<float>(),
                    .moment2 = moments.second.data_ptr<float>(),
                    .gradient = gradient.data_ptr<float>(),
                    .count = gradient.numel()},
                   torch_executor());
  }
  memory_ = std::move(memory);
  ++step_;
  return value;
}

void Trainer::save(Checkpoint& checkpoint) const {
  checkpoint.step = step_;
  for (size_t n = 0; n < optimizer_->moments.size(); ++n) {
    const NamedParameter& parameter = decoder_.parameters()[n];
    const auto& [first, second] = optimizer_->moments[n];
    checkpoint.sections.emplace_back("weight/" + parameter.name, bytes_of(parameter.value));
    checkpoint.sections.emplace_back("moment1/" + parameter.name, bytes_of(first));
    checkpoint.sections.emplace_back("moment2/" + parameter.name, bytes_of(second));
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
    decoder_.parameters()[n].value.detach().copy_(restored[n].weight);
    optimizer_->moments[n] = {restored[n].moment1, restored[n].moment2};
  }
  memory_ = std::move(memory);
  step_ = checkpoint.step;
}

}  // namespace sextant::lab
