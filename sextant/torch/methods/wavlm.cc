// wavlm: T5's bias by bucket of distances, times a gate that the query's input decides.
//
// Chen et al. 2021 (WavLM, arXiv 2110.13900), with x_i the layer's input as heads of head_dim:
//
//   s_ij  = q_i.k_j / sqrt(d) + g_i b[bucket(j - i), h]
//   g_i   = sigmoid(u.x_i) (sigmoid(w.x_i) c_h - 1) + 2
//
// All layers share the table b; the two gates of each are sums of four outputs of a linear layer
// (WavLMAttention in transformers: gru_rel_pos_linear, gru_rel_pos_const). So b is a table that the
// gate alone meets, as r of the score equation.
#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>

#include <nlohmann/json_fwd.hpp>

#include "sextant/base/error.h"
#include "sextant/position/row_map.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

constexpr int64_t kGates = 8;  // outputs of the linear layer, four for each gate

class WavLm final : public Method {
 public:
  WavLm(const ModelShape& shape, const T5Buckets& buckets) : shape_(shape), buckets_(buckets) {}

  // The table, then the factor, weight and bias of each layer.
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs = {ParameterSpec::normal(
        "layers.0.attention.rel_attn_embed.weight", {buckets_.buckets(), shape_.heads}, 1)};
    for (int64_t n = 0; n < shape_.layers; ++n) {
      const std::string layer = "layers." + std::to_string(n) + ".attention.gru_rel_pos_";
      specs.push_back({.name = layer + "const",
                       .sizes = {1, shape_.heads, 1, 1},
                       .init = ParameterSpec::Init::kOnes});
      specs.push_back(
          ParameterSpec::normal(layer + "linear.weight", {kGates, shape_.head_dim}, 0.02));
      specs.push_back({.name = layer + "linear.bias", .sizes = {kGates}});
    }
    return specs;
  }

  int64_t further_query_columns() const override { return 1; }
  at::Tensor query_columns(const at::Tensor& x, int64_t layer,
                           Parameters parameters) const override {
    if (x.size(2) != shape_.heads * shape_.head_dim)
      fail("wavlm: width: expected heads * head_dim = " +
           std::to_string(shape_.heads * shape_.head_dim) + ", but got " +
           std::to_string(x.size(2)));
    const auto own = parameters.subspan(static_cast<size_t>(1 + 3 * layer));
    const at::Tensor heads = x.unflatten(2, {shape_.heads, shape_.head_dim}).transpose(1, 2);
    const at::Tensor gates =
        at::sigmoid(at::linear(heads, own[1], own[2]).unflatten(3, {2, kGates / 2}).sum(-1));
    return gates.slice(3, 0, 1) * (gates.slice(3, 1, 2) * own[0] - 1) + 2;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t,
             Parameters parameters) const override {
    operands.table_query = operands.q.slice(3, shape_.head_dim);
    operands.q = operands.q.slice(3, 0, shape_.head_dim);
    operands.on_query = {.rows = parameters[0].transpose(0, 1).unsqueeze(2),
                         .row_at = tensor_of(row_map(layout.diagonals(), buckets_))};
  }

 private:
  ModelShape shape_;
  T5Buckets buckets_;
};

std::unique_ptr<Method> make_wavlm(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("wavlm", json);
  return std::make_unique<WavLm>(
      shape,
      T5Buckets({.buckets = options.integer("buckets", 4, int64_t{1} << 20),
                 .max_distance = options.integer("max_distance", 2, (int64_t{1} << 31) - 1)}));
}

}  // namespace

MethodInfo wavlm_method() {
  return {.name = "wavlm",
          .summary = "A bias by bucket, gated by the query's input (Chen et al. 2021)",
          .formula =
              "s_ij = q_i . k_j / sqrt(d) + g_i b[bucket(j - i), h]; "
              "g_i = sigmoid(u . x_i) (sigmoid(w . x_i) c_h - 1) + 2",
          .defaults = R"({"buckets": 320, "max_distance": 800})",
          .make = make_wavlm,
          .tests = {.options = R"({"buckets": 8, "max_distance": 20})"}};
}

}  // namespace sextant
