// tener: sinusoids of the signed distance, two trained vectors, and no 1/sqrt(d).
//
// Yan et al. 2019 (arXiv 1911.04474), encoders for named entities. Flavour "code" (fastnlp/TENER):
//   s_ij = (q_i + c).k_j + (q_i + p).R[j-i] + k_j.R[i-j]
// Flavour "paper":
//   s_ij = (q_i + c).k_j + (q_i + p).R[i-j]
//
// c (r_r_bias) and p (r_w_bias) are [heads, head_dim], one of each per layer; their names are the
// reverse of Transformer-XL's. R has head_dim columns and is neither trained nor projected, so it
// distinguishes left from right:
//   code   sin(t w_0), sin(t w_1), ..., cos(t w_0), ...,   w_m = 10000^(-m / (d/2 - 1))
//   paper  sin(t w_0), cos(t w_0), sin(t w_1), ...,        w_m = 10000^(-2m / d)
// Option "layout" combines either layout with either score. An odd width has a last column of
// zeros.
//
// The paper also omits W_k (a head's keys are its columns of the input); the code has it, and this
// method uses the keys that it is given. Scores are not scaled, as sharp attention suits the task;
// "scaled": 1/sqrt(d). Any length works; the official code fails at exactly 601.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/relative_vectors.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class Tener final : public Method {
 public:
  Tener(const ModelShape& shape, SinusoidLayout layout, bool paper, bool scaled)
      : shape_(shape),
        sinusoids_({.width = shape.head_dim, .layout = layout}),
        paper_(paper),
        scaled_(scaled) {}

  // c of all layers, then p of all layers.
  std::vector<ParameterSpec> parameters() const override {
    const double xavier = std::sqrt(2 / static_cast<double>(shape_.heads + shape_.head_dim));
    std::vector<ParameterSpec> specs;
    for (const char* bias : {"r_r_bias", "r_w_bias"})
      for (int64_t layer = 0; layer < shape_.layers; ++layer)
        specs.push_back(
            ParameterSpec::normal("layers." + std::to_string(layer) + ".self_attn." + bias,
                                  {shape_.heads, shape_.head_dim}, xavier));
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    if (!scaled_) use_scale(operands, 1);
    constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
    const ClippedDistances distances = clipped_distances(layout.diagonals(), -kFar, kFar);
    const auto table = [&](int64_t sign) {
      return TableOperand{.rows = sinusoids_.rows(distances, sign, operands.q).unsqueeze(0),
                          .row_at = distances.row_at};
    };
    const auto layers = static_cast<size_t>(shape_.layers);
    place_with_biases(operands, table(paper_ ? 1 : -1), of_layer(parameters.first(layers), layer),
                      of_layer(parameters.subspan(layers), layer));
    if (!paper_) operands.on_key = table(1);
  }

 private:
  ModelShape shape_;
  SinusoidTable sinusoids_;
  bool paper_, scaled_;
};

std::unique_ptr<Method> make_tener(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("tener", json);
  const bool paper = options.choice("flavour", {"code", "paper"}) == 1;
  SinusoidLayout layout = paper ? SinusoidLayout::kInterleaved : SinusoidLayout::kTensor2Tensor;
  if (!json.at("layout").is_null())
    layout = sinusoid_layout(options.string("layout"), "tener: layout");
  return std::make_unique<Tener>(shape, layout, paper, options.flag("scaled"));
}

}  // namespace

MethodInfo tener_method() {
  return {.name = "tener",
          .summary = "Sinusoids of the signed distance, two biases, unscaled (Yan et al. 2019)",
          .formula = "s_ij = (q_i + c) . k_j + (q_i + p) . R[j - i] + k_j . R[i - j]",
          .defaults = R"({"flavour": "code", "layout": null, "scaled": false})",
          .make = make_tener};
}

}  // namespace sextant
