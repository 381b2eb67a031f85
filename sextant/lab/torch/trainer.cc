// A step sums gradients, the loss and the requests of all ranks in one vector, clips by the norm,
// and takes a step of AdamW.
#include "sextant/lab/torch/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/lab/run/train_model.h"
#include "sextant/torch/operators/device_call.h"

namespace sextant::lab {
namespace {

constexpr int64_t kNumbersBesideGradients = 3;  // see sums()

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().cpu().contiguous();
  return {static_cast<const char*>(whole.data_ptr()), whole.nbytes()};
}

// A tensor like `like`, on its device, with these bytes.
at::Tensor tensor_of(const std::string& bytes, const at::Tensor& like, const std::string& name) {
  at::Tensor tensor = at::empty(like.sizes(), like.options().device(at::kCPU));
  if (bytes.size() != tensor.nbytes())
    fail("checkpoint: " + name + ": expected " + std::to_string(tensor.nbytes()) +
         " bytes, but got " + std::to_string(bytes.size()));
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor.to(like.device());
}

// The formula of adamw.h.
void advance_by_operators(const dense::AdamW& adamw, const at::Tensor& weight,
                          const Moments& moments, const at::Tensor& gradient) {
  const at::NoGradGuard no_gradients;
  const auto step = static_cast<double>(adamw.step);
  const at::Tensor g = gradient * adamw.gradient_scale;
  moments.first.mul_(adamw.beta1).add_(g, 1 - adamw.beta1);
  moments.second.mul_(adamw.beta2).addcmul_(g, g, 1 - adamw.beta2);
  const at::Tensor below =
      moments.second.sqrt().div_(std::sqrt(1 - std::pow(adamw.beta2, step))).add_(adamw.epsilon);
  weight.detach()
      .mul_(1 - adamw.rate * adamw.decay)
      .addcdiv_(moments.first, below, -adamw.rate / (1 - std::pow(adamw.beta1, step)));
}

}  // namespace

// The moments of AdamW, one pair per parameter in the decoder's order.
struct Trainer::Optimizer {
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

struct Trainer::Sums {
  double loss = 0;
  std::vector<at::Tensor> gradients = {};
  Requests requests = {};
};

Trainer::Trainer(const TrainingOptions& options, Batches batches, Decoder& decoder, int64_t memory,
                 Group group)
    : options_(options),
      batches_(std::move(batches)),
      decoder_(decoder),
      memory_{.limit = memory},
      group_(std::move(group)),
      optimizer_(std::make_unique<Optimizer>(decoder)) {
  check_rows(options.batch, group_.size());
  if (group_.size() > 1 && !decoder.device().is_cpu())
    fail("training: device: expected cpu for a group of processes, but got " +
         decoder.device().str());
}

Trainer::Trainer(const TrainingOptions& options, const Corpus& corpus, Decoder& decoder,
                 uint64_t seed, int64_t memory, Group group)
    : Trainer(options, text_batches(options, corpus, seed, memory > 0), decoder, memory,
              std::move(group)) {}

Trainer::~Trainer() = default;

at::Tensor Trainer::own_rows(const at::Tensor& batch) const {
  if (group_.size() == 1 || !batch.defined()) return batch;
  const int64_t rows = batch.size(0) / group_.size();
  return batch.narrow(0, group_.rank() * rows, rows);
}

at::Tensor Trainer::all_rows(const at::Tensor& own) const {
  if (group_.size() == 1) return own;
  // A broadcast of each rank's rows keeps all bits; a sum with zeros would lose the sign of zeros.
  std::vector<at::Tensor> all;
  for (int64_t rank = 0; rank < group_.size(); ++rank) {
    const at::Tensor rows =
        rank == group_.rank() ? own.contiguous() : at::empty(own.sizes(), own.options());
    group_.broadcast({rows}, rank);
    all.push_back(rows);
  }
  return at::cat(all);
}

// The part of the batch's mean loss that comes from this rank's rows.
at::Tensor Trainer::mean_loss(const Batch& batch, Memory& memory) const {
  const at::Tensor tokens = own_rows(batch.tokens), targets = own_rows(batch.targets);
  const at::Tensor losses = batch.order.defined()
                                ? decoder_.permuted_losses(tokens, targets, own_rows(batch.order))
                                : decoder_.losses(tokens, targets, memory);
  if (group_.size() == 1) return losses.mean();
  return losses.sum() / batch.targets.ge(0).sum().item<int64_t>();
}

std::vector<at::Tensor> Trainer::gradients() const {
  std::vector<at::Tensor> all;
  for (const NamedParameter& parameter : decoder_.parameters()) {
    const at::Tensor& gradient = parameter.value.grad();
    all.push_back(gradient.defined() ? gradient.contiguous() : gradient);
  }
  return all;
}

// Everything that ranks must know of each other is in one vector: zeros for the gradients of unused
// parameters, which are the same ones on all ranks, as these run the same graph; then the rest. A
// rank whose loss is not finite sends it with no gradients, so that all ranks end the step alike.
Trainer::Sums Trainer::sums(double loss, const Requests& requests) const {
  Sums sums{.loss = loss, .gradients = gradients(), .requests = requests};
  if (group_.size() == 1) return sums;
  const at::Tensor all = at::zeros({decoder_.weights() + kNumbersBesideGradients});
  std::vector<at::Tensor> parts;
  int64_t first = 0;
  for (size_t n = 0; n < sums.gradients.size(); ++n) {
    const int64_t count = decoder_.parameters()[n].value.numel();
    parts.push_back(all.narrow(0, first, count));
    if (sums.gradients[n].defined()) parts[n].copy_(sums.gradients[n].view({-1}));
    first += count;
  }
  float* numbers = all.data_ptr<float>() + first;
  numbers[0] = static_cast<float>(loss);
  numbers[1] = requests.stop ? 1 : 0;
  numbers[2] = requests.save ? 1 : 0;
  group_.all_reduce({all});
  sums.loss = numbers[0];
  sums.requests = {.stop = numbers[1] > 0, .save = numbers[2] > 0};
  for (size_t n = 0; n < parts.size(); ++n)
    if (sums.gradients[n].defined()) sums.gradients[n] = parts[n];
  return sums;
}

Trainer::Step Trainer::advance(const std::function<Requests()>& requests) {
  Memory memory = memory_;
  const at::Tensor loss = mean_loss(batches_(step_), memory);
  const auto own_loss = loss.item<double>();
  for (const NamedParameter& parameter : decoder_.parameters())
    parameter.value.mutable_grad().reset();
  if (std::isfinite(own_loss)) loss.backward();
  const Sums all = sums(own_loss, requests());
  if (!std::isfinite(all.loss)) return {.loss = all.loss};
  const double norm = norm_of(all.gradients);
  if (!std::isfinite(norm)) return {.loss = norm};
  apply(all.gradients, norm);
  memory_ = std::move(memory);
  ++step_;
  return {.loss = all.loss, .requests = all.requests};
}

void Trainer::apply(const std::vector<at::Tensor>& gradients, double norm) {
  dense::AdamW adamw{.beta1 = options_.beta1,
                     .beta2 = options_.beta2,
                     .step = step_ + 1,
                     .gradient_scale = std::min(1.0, options_.clip / (norm + 1e-6))};
  for (size_t n = 0; n < gradients.size(); ++n) {
    if (!gradients[n].defined()) continue;
    const NamedParameter& parameter = decoder_.parameters()[n];
    adamw.rate =
        options_.learning_rate * parameter.learning_rate_scale * learning_rate_at(options_, step_);
    adamw.decay = parameter.weight_decay ? options_.weight_decay : 0;
    lab::advance(adamw, parameter.value, optimizer_->moments[n], gradients[n]);
  }
}

void Trainer::save(TrainingState& state) const {
  state.step = step_;
  for (size_t n = 0; n < optimizer_->moments.size(); ++n) {
    const NamedParameter& parameter = decoder_.parameters()[n];
    const auto& [first, second] = optimizer_->moments[n];
    state.sections.emplace_back("weight/" + parameter.name, bytes_of(parameter.value));
    state.sections.emplace_back("moment1/" + parameter.name, bytes_of(first));
    state.sections.emplace_back("moment2/" + parameter.name, bytes_of(second));
  }
  for (size_t n = 0; n < memory_.layers.size(); ++n)
    state.sections.emplace_back("memory/" + std::to_string(n),
                                bytes_of(all_rows(memory_.layers[n])));
}

void Trainer::restore(const TrainingState& state) {
  std::map<std::string, const std::string*> sections;
  for (const auto& [name, bytes] : state.sections) sections[name] = &bytes;
  const auto read = [&](const std::string& name, const at::Tensor& like) {
    const auto found = sections.find(name);
    if (found == sections.end()) fail("checkpoint: " + name + ": expected it, but it is missing");
    return tensor_of(*found->second, like.detach(), name);
  };
  struct Restored {
    at::Tensor weight, moment1, moment2;
  };
  std::vector<Restored> restored;
  for (const NamedParameter& parameter : decoder_.parameters())
    restored.push_back({read("weight/" + parameter.name, parameter.value),
                        read("moment1/" + parameter.name, parameter.value),
                        read("moment2/" + parameter.name, parameter.value)});
  Memory memory{.limit = memory_.limit};
  const int64_t positions = std::min(memory.limit, state.step * options_.length);
  const at::Tensor all = at::empty({options_.batch, positions, decoder_.options().width},
                                   at::TensorOptions(decoder_.device()));
  for (int64_t n = 0; positions > 0 && n < decoder_.options().layers; ++n)
    memory.layers.push_back(own_rows(read("memory/" + std::to_string(n), all)).clone());
  for (size_t n = 0; n < restored.size(); ++n) {
    decoder_.parameters()[n].value.detach().copy_(restored[n].weight);
    optimizer_->moments[n] = {restored[n].moment1, restored[n].moment2};
  }
  memory_ = std::move(memory);
  step_ = state.step;
}

void advance(const dense::AdamW& adamw, const at::Tensor& weight, const Moments& moments,
             const at::Tensor& gradient) {
  if (!weight.is_cpu()) return advance_by_operators(adamw, weight, moments, gradient);
  dense::advance(adamw,
                 {.weight = weight.data_ptr<float>(),
                  .moment1 = moments.first.data_ptr<float>(),
                  .moment2 = moments.second.data_ptr<float>(),
                  .gradient = gradient.data_ptr<float>(),
                  .count = gradient.numel()},
                 torch_executor());
}

double norm_of(std::span<const at::Tensor> gradients) {
  double squares = 0;
  std::vector<at::Tensor> norms;  // on other devices, copied to the host at once
  for (const at::Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    if (gradient.is_cpu()) {
      squares +=
          dense::sum_of_squares(gradient.data_ptr<float>(), gradient.numel(), torch_executor());
    } else {
      norms.push_back(at::linalg_vector_norm(gradient.view({-1}), 2, at::OptionalIntArrayRef(),
                                             /*keepdim=*/false, at::kDouble));
    }
  }
  if (!norms.empty()) squares += at::stack(norms).square().sum().item<double>();
  return std::sqrt(squares);
}

}  // namespace sextant::lab
