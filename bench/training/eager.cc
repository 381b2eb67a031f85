#include "bench/training/eager.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <torch/types.h>

// These headers do not include what they use.
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sextant::bench {
namespace {

using torch::optim::AdamW;
using torch::optim::AdamWOptions;

at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  return x * cos + at::cat({-halves[1], halves[0]}, -1) * sin;
}

}  // namespace

struct EagerTrainer::State {
  DecoderOptions options;
  double clip;
  std::map<std::string, at::Tensor> weights;
  std::vector<at::Tensor> all;
  at::Tensor cos, sin, mask;
  std::unique_ptr<AdamW> adamw;

  at::Tensor norm(const at::Tensor& x, const std::string& gain) const {
    return at::layer_norm(x, {options.width}, weights.at(gain), {}, options.norm_epsilon);
  }

  at::Tensor attention(const at::Tensor& x, const std::string& layer) const {
    const int64_t batch = x.size(0), length = x.size(1), heads = options.heads;
    const std::vector<at::Tensor> qkv =
        at::linear(norm(x, layer + "attention.norm"), weights.at(layer + "attention.in"))
            .view({batch, length, 3 * heads, options.head_dim()})
            .transpose(1, 2)
            .chunk(3, 1);
    const at::Tensor q = rotated(qkv[0], cos, sin), k = rotated(qkv[1], cos, sin);
    const double scale = 1 / std::sqrt(static_cast<double>(options.head_dim()));
    const at::Tensor p = at::softmax(at::matmul(q, k.transpose(2, 3)) * scale + mask, -1);
    const at::Tensor out = at::matmul(p, qkv[2]).transpose(1, 2).reshape(x.sizes());
    return at::linear(out, weights.at(layer + "attention.out"));
  }

  at::Tensor logits(const at::Tensor& tokens) const {
    const at::Tensor& embedding = weights.at("embedding");
    at::Tensor x = at::embedding(embedding, tokens) * std::sqrt(static_cast<double>(options.width));
    for (int64_t n = 0; n < options.layers; ++n) {
      const std::string layer = "layers." + std::to_string(n) + ".";
      x = x + attention(x, layer);
      const at::Tensor up = at::linear(norm(x, layer + "mlp.norm"), weights.at(layer + "mlp.up"));
      x = x + at::linear(at::relu(up).pow(2), weights.at(layer + "mlp.down"));
    }
    return at::linear(norm(x, "final_norm"), embedding);
  }
};

EagerTrainer::EagerTrainer(const Decoder& decoder, const lab::TrainingOptions& options)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.options = decoder.options();
  state.clip = options.clip;
  std::vector<at::Tensor> decaying, others;
  for (const NamedParameter& parameter : decoder.parameters()) {
    const at::Tensor weight = parameter.value.detach().clone().requires_grad_();
    state.weights[parameter.name] = weight;
    state.all.push_back(weight);
    (parameter.weight_decay ? decaying : others).push_back(weight);
  }
  const auto group = [&](std::vector<at::Tensor> weights, double decay) {
    auto of = std::make_unique<AdamWOptions>(options.learning_rate);
    of->betas({options.beta1, options.beta2});
    of->weight_decay(decay);
    return torch::optim::OptimizerParamGroup(std::move(weights), std::move(of));
  };
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.push_back(group(std::move(decaying), options.weight_decay));
  groups.push_back(group(std::move(others), 0));
  state.adamw = std::make_unique<AdamW>(std::move(groups), AdamWOptions(options.learning_rate));

  const int64_t length = options.length, half = state.options.head_dim() / 2;
  const at::Tensor frequencies =
      at::pow(10000.0, at::arange(half, at::kDouble) / (-static_cast<double>(half)));
  const at::Tensor angles = at::arange(length, at::kDouble).unsqueeze(1) * frequencies;
  const at::Tensor both = at::cat({angles, angles}, 1);
  state.cos = both.cos().to(at::kFloat);
  state.sin = both.sin().to(at::kFloat);
  state.mask =
      at::full({length, length}, -std::numeric_limits<double>::infinity(), at::kFloat).triu(1);
}

EagerTrainer::~EagerTrainer() = default;

double EagerTrainer::advance(const lab::Batch& batch, double rate) {
  State& state = *state_;
  const at::Tensor targets = batch.targets.reshape({-1});
  const at::Tensor loss =
      at::cross_entropy_loss(state.logits(batch.tokens).view({targets.size(0), -1}), targets);
  const double value = loss.item<double>();
  state.adamw->zero_grad();
  loss.backward();
  torch::nn::utils::clip_grad_norm_(state.all, state.clip);
  for (auto& group : state.adamw->param_groups()) group.options().set_lr(rate);
  state.adamw->step();
  return value;
}

}  // namespace sextant::bench
