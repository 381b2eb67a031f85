// fox: each token has a trained gate that sets how much of the tokens before it is forgotten.
//
// Lin, Nikishin, He and Courville 2025 (Forgetting Transformer, arXiv 2503.02130):
//
//   s_ij = q_i.k_j / sqrt(d) + c_i - c_j
//   c_i = sum_{t <= i} ln f_t,   f_t = sigmoid(w_h.x_t + b_h)
//
// x is the layer's input and f_t has one gate per head. A pair is penalised by the gates between
// its key and its query, including the query's own gate but not the key's. No other positions are
// needed. The paper has no keys in the future; here they mirror the past: the gates from after the
// query up to the key.
//
// A key carries the logits of its gates in further columns (Method::key_columns). With the causal
// mask, c_i is the same for all keys of a query and cancels in softmax: it is the query_shift,
// which sinks need, and -c_j is the key_bias. With keys in the future the sign depends on the pair,
// so -|c_i - c_j| is a query_bias, computed in blocks of queries.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/device_constants.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

// The key row at each query's position, int64 [queries].
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

// Whether a key row belongs to no sequence, bool [keys, 1].
at::Tensor of_nobody(const Layout& layout) {
  at::Tensor nobody = at::ones({layout.keys, 1}, at::kBool);
  for (const Frame& sequence : sequences(layout))
    nobody.narrow(0, sequence.key_row, sequence.keys).zero_();
  return nobody;
}

class Fox final : public Method {
 public:
  explicit Fox(const ModelShape& shape) : shape_(shape), group_(shape.heads / shape.key_heads) {}

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (int64_t n = 0; n < shape_.layers; ++n) {
      const std::string of = shape_.layers > 1 ? "layers." + std::to_string(n) + ".attn." : "";
      specs.push_back(ParameterSpec::normal(of + "fgate_proj.weight", {shape_.heads, shape_.width},
                                            0.02, true));
      specs.push_back({.name = of + "fgate_proj.bias", .sizes = {shape_.heads}});
    }
    return specs;
  }

  bool changes_keys() const override { return true; }

  int64_t further_key_columns() const override { return group_; }
  at::Tensor key_columns(const at::Tensor& x, int64_t layer, Parameters parameters) const override {
    const at::Tensor& bias = of_layer(parameters, shape_.layers > 1 ? 2 * layer + 1 : 1);
    const at::Tensor& weight = of_layer(parameters, shape_.layers > 1 ? 2 * layer : 0);
    return at::linear(x, weight, bias)
        .unflatten(2, {shape_.key_heads, group_})
        .permute({0, 2, 1, 3});
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t, Parameters) const override {
    const int64_t columns = operands.q.size(3);
    if (operands.k.size(3) != columns + group_)
      fail("fox: k: expected " + std::to_string(columns) + " columns and " +
           std::to_string(group_) + " more, the logits of its gates (key_columns), but got " +
           std::to_string(operands.k.size(3)));
    // [batch, key heads, keys, group]. The sums below are relative to the last key, since the
    // queries of decoding are near it.
    const at::Tensor forgotten = at::log_sigmoid(operands.k.slice(3, columns).to(at::kDouble));
    // Rows of no sequence, which a cache has between pages, may hold any values.
    const at::Tensor gates = forgotten.masked_fill(on_device_of(forgotten, of_nobody(layout)), 0);
    // c_j = sum over t > j of ln f_t, added up from the last key. Then the gradient of a gate is a
    // sum over the keys before it: tiny where these are forgotten, and no difference of large sums.
    const at::Tensor c =
        (at::cumsum(gates.flip(2), 2).flip(2) - gates).transpose(2, 3).flatten(1, 2);
    operands.k = operands.k.slice(3, 0, columns);
    const at::Tensor own = own_keys(layout);
    if (layout.causal) {
      operands.key_bias = c;  // [batch, heads, keys]
      operands.query_shift = -c.index_select(2, on_device_of(c, own));
    } else {
      forget_both_ways(operands, layout, c, own);
    }
  }

 private:
  // -|c_i - c_j| by query and distance.
  static void forget_both_ways(TensorOperands& operands, const Layout& layout, const at::Tensor& c,
                               const at::Tensor& own) {
    // The first and last key row of each query's sequence.
    std::vector<KeyRange> rows(static_cast<size_t>(layout.queries));
    for (const Frame& sequence : sequences(layout))
      std::fill_n(rows.begin() + sequence.query_row, sequence.queries,
                  KeyRange{sequence.key_row, sequence.key_row + sequence.keys - 1});
    const auto penalties = [rows, own, type = wide_type(operands.q)](
                               const std::vector<at::Tensor>& inputs, const QueryBlock& queries,
                               const Diagonals& diagonals) {
      const at::Tensor& sums = inputs[0];
      const auto count = static_cast<int64_t>(queries.positions.size());
      const at::Tensor mine = own.narrow(0, queries.first, count);
      at::Tensor others = at::empty({count, diagonals.count}, at::kLong);
      int64_t* to = others.data_ptr<int64_t>();
      for (int64_t i = 0; i < count; ++i) {
        const KeyRange& all = rows[static_cast<size_t>(queries.first + i)];
        for (int64_t n = 0; n < diagonals.count; ++n)  // keys that no query sees may have any bias
          *to++ =
              std::clamp(mine.data_ptr<int64_t>()[i] - diagonals.distance(n), all.first, all.last);
      }
      // Not on_device_of(), which would keep the copies of all blocks.
      const at::Tensor theirs =
          sums.index_select(2, others.flatten().to(sums.device())).unflatten(2, others.sizes());
      const at::Tensor ours = sums.index_select(2, on_device_of(sums, mine));
      return -(ours.unsqueeze(3) - theirs).abs().to(type);
    };
    operands.lazy_query_bias = {.inputs = {c},
                                .rows = penalties,
                                .diagonals = layout.diagonals(),
                                .from = std::numeric_limits<int64_t>::min()};  // every query
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
