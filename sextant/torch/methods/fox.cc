// fox: every token says how much of what came before it shall be forgotten.
//
// Lin, Nikishin, He and Courville 2025 (Forgetting Transformer, arXiv 2503.02130):
//
//   s_ij = q_i.k_j / sqrt(d) + c_i - c_j,    c_i = sum_{t <= i} ln f_t,    f_t = sigmoid(w_h.x_t +
//   b_h)
//
// x is the layer's input, f_t one gate for each head; a pair is penalised by the gates between, the
// query's own included, the key's not. No other positions are needed. Towards the future, which the
// paper does not have, the same is mirrored: the gates from behind the query up to the key.
//
// A key carries the logits of its gates with it, in columns behind its own (Method::key_columns).
// The penalty is part of the product of q and k: sums c reach thousands where differences of a
// hundredth count, so each is said by two columns, a whole number of steps and the rest. Those of
// whole steps come first, and since products are summed column by column
// (attention/cpu/multiply-inl.h), their difference is exact before anything small is added to it.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/round.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/key_ranges.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

constexpr int64_t kFar = int64_t{1} << 52;

// The row of the key that stands where a query stands, int64 [queries].
at::Tensor own_keys(const Layout& layout) {
  at::Tensor rows = at::empty({layout.queries}, at::kLong);
  for (const Frame& sequence : sequences(layout))
    for (int64_t n = 0; n < sequence.queries; ++n) {
      const int64_t key = sequence.query_position + n - sequence.key_position;
      if (key < 0 || key >= sequence.keys)
        fail("fox: queries: expected positions " + std::to_string(sequence.key_position) + " to " +
             std::to_string(sequence.key_position + sequence.keys - 1) +
             ", where there are keys and so gates, but got " +
             std::to_string(sequence.query_position + n));
      rows.data_ptr<int64_t>()[sequence.query_row + n] = sequence.key_row + key;
    }
  return rows;
}

// Whether a key row belongs to no text, bool [keys, 1].
at::Tensor of_nobody(const Layout& layout) {
  at::Tensor nobody = at::ones({layout.keys, 1}, at::kBool);
  for (const Frame& sequence : sequences(layout))
    nobody.narrow(0, sequence.key_row, sequence.keys).zero_();
  return nobody;
}

// c in two parts that float32 holds: whole steps, as many as it counts exactly, and the rest,
// through which gradients go. A step is 1 until sums pass 2^23.
struct Parts {
  at::Tensor steps, rest;

  explicit Parts(const at::Tensor& c) {
    const at::Tensor most = c.numel() == 0 ? at::ones({}, at::kDouble) : c.detach().abs().amax();
    const at::Tensor step = at::exp2(at::ceil(at::log2(most * 0x1p-23))).clamp_min(1.0);
    steps = at::round(c.detach() / step) * step;
    rest = c - steps;
  }
};

class Fox final : public Method {
 public:
  explicit Fox(const ModelShape& shape) : shape_(shape), group_(shape.heads / shape.key_heads) {}

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (int64_t n = 0; n < shape_.layers; ++n) {
      const std::string of = shape_.layers > 1 ? "layers." + std::to_string(n) + ".attn." : "";
      specs.push_back({.name = of + "fgate_proj.weight",
                       .sizes = {shape_.heads, shape_.width},
                       .init = ParameterSpec::Init::kNormal,
                       .init_high = 0.02,
                       .weight_decay = true});
      specs.push_back({.name = of + "fgate_proj.bias", .sizes = {shape_.heads}});
    }
    return specs;
  }

  bool changes_keys() const override { return true; }

  at::Tensor key_columns(const at::Tensor& x, int64_t layer, Parameters parameters) const override {
    const at::Tensor& bias = of_layer(parameters, shape_.layers > 1 ? 2 * layer + 1 : 1);
    const at::Tensor& weight = of_layer(parameters, shape_.layers > 1 ? 2 * layer : 0);
    return at::linear(x, weight, bias)
        .unflatten(2, {shape_.key_heads, group_})
        .permute({0, 2, 1, 3});
  }

  void apply(Operands& operands, const Layout& layout, int64_t, Parameters) const override {
    const int64_t columns = operands.q.size(3);
    if (operands.k.size(3) != columns + group_)
      fail("fox: k: expected " + std::to_string(columns) + " columns and " +
           std::to_string(group_) + " more, the logits of its gates (key_columns), but got " +
           std::to_string(operands.k.size(3)));
    // [batch, key heads, keys, group], counted from the last key, near which a decoder looks.
    const at::Tensor forgotten = at::log_sigmoid(operands.k.slice(3, columns).to(at::kDouble));
    // Rows of no text, which a cache has between pages, may hold anything.
    at::Tensor c = at::cumsum(forgotten.masked_fill(of_nobody(layout), 0), 2);
    if (c.numel() > 0) c = c - c.slice(2, -1).detach();
    dress(operands, Parts(c), own_keys(layout));
    if (!layout.causal) mirror(operands, layout);
  }

 private:
  // q = [steps_i, 1 of its head, rest_i, 1 of its head, q / sqrt(d)], k = [1, -steps_j, 1, -rest_j,
  // k]
  void dress(Operands& operands, const Parts& c, const at::Tensor& own) const {
    const at::Tensor &q = operands.q, &k = operands.k;
    const int64_t batch = q.size(0), heads = q.size(1), queries = q.size(2);
    const auto of_queries = [&](const at::Tensor& x) {
      return x.index_select(2, own)
          .transpose(2, 3)
          .reshape({batch, heads, queries, 1})
          .to(q.options());
    };
    const auto of_keys = [&](const at::Tensor& x) { return (-x).to(k.options()); };
    const at::Tensor head = at::eye(group_, q.options())
                                .repeat({k.size(1), 1})
                                .view({1, heads, 1, group_})
                                .expand({batch, heads, queries, group_});
    const at::Tensor one =
        at::ones({1, 1, 1, 1}, k.options()).expand({batch, k.size(1), k.size(2), 1});
    operands.k =
        at::cat({one, of_keys(c.steps), one, of_keys(c.rest), k.slice(3, 0, q.size(3))}, 3);
    operands.q =
        at::cat({of_queries(c.steps), head, of_queries(c.rest), head, q * operands.scale}, 3);
    operands.scale = 1;
  }

  // Keys in the future meet queries whose gate columns are turned by half a turn: c_j - c_i.
  void mirror(Operands& operands, const Layout& layout) const {
    SweepOperand past = operands.sweeps.at(0), future = past;
    const at::Tensor behind = near_ranges(layout, kFar, 0);
    past.key_ranges = intersection(past.key_ranges, behind);
    future.key_ranges = after(future.key_ranges, behind);
    for (int pair = 0; pair <= static_cast<int>(group_); ++pair) {
      future.rotation.pairs.push_back({.first = 2 * pair, .second = 2 * pair + 1});
      future.query_offset.push_back({.high = uint64_t{1} << 63});
    }
    future.query_rotary_positions = at::zeros({1, 1, layout.queries}, at::kLong);
    future.key_rotary_positions = at::zeros({1, 1, layout.keys}, at::kLong);
    operands.sweeps = {past, future};
  }

  ModelShape shape_;
  int64_t group_;
};

std::unique_ptr<Method> make_fox(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("fox", json);
  return std::make_unique<Fox>(shape);
}

}  // namespace

MethodInfo fox_method() {
  return {.name = "fox",
          .summary = "Trained gates that forget the past (Forgetting Transformer, Lin et al. 2025)",
          .formula =
              "s_ij = q_i . k_j / sqrt(d) + sum over t = j + 1 .. i of ln f_t; "
              "f_t = sigmoid(w_h . x_t + b_h)",
          .defaults = "{}",
          .make = make_fox};
}

}  // namespace sextant
