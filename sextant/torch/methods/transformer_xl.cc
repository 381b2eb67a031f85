// transformer-xl: projected sinusoids of the distance, with trained vectors added to the query.
//
// Dai et al. 2019 (arXiv 1901.02860):
//
//   s_ij = ( (q_i + u).k_j + (q_i + v).W_R R[i-j] ) / sqrt(d)
//   R[t] = sin(t w_0), sin(t w_1), ..., cos(t w_0), ...,   w_f = 10000^(-2f / C), C the width
//
// u (r_w_bias) and v (r_r_bias) are [heads, head_dim] and are added after the projection of the
// query; each layer has its own W_R. With untie_r each layer also has its own u and v (the released
// TensorFlow models, Hugging Face); otherwise all layers share them (the PyTorch code). Memory
// consists of keys before the first query, which the caller passes without gradient.
//
// R exists for any distance, but distances past training are untrained; with clamp_len > 0 all
// farther distances are clipped to clamp_len. With same_length each query sees the mem_len nearest
// keys, itself among them, so that the first query of a segment sees no fewer keys than the last.
#include <ATen/ops/linear.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/relative_vectors.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

struct TransformerXlOptions {
  bool untied = true;
  int64_t clamp = 0;  // 0: none
  double init_std = 0;
};

class TransformerXl final : public Method {
 public:
  TransformerXl(const ModelShape& shape, const TransformerXlOptions& options)
      : shape_(shape),
        options_(options),
        sinusoids_({.width = shape.width, .layout = SinusoidLayout::kConcatenated}) {}

  // u, then v, of each layer or shared; then W_R of each layer.
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    const auto add = [&](int64_t layer, const std::string& name, std::vector<int64_t> sizes) {
      const std::string prefix = layer < 0 ? "" : "layers." + std::to_string(layer) + ".dec_attn.";
      specs.push_back(ParameterSpec::normal(prefix + name, std::move(sizes), options_.init_std));
    };
    for (const char* bias : {"r_w_bias", "r_r_bias"})
      for (int64_t n = 0; n < biases(); ++n)
        add(options_.untied ? n : -1, bias, {shape_.heads, shape_.head_dim});
    for (int64_t n = 0; n < shape_.layers; ++n) {
      add(n, "r_net.weight", {shape_.heads * shape_.head_dim, shape_.width});
      specs.back().weight_decay = true;
    }
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
    const ClippedDistances distances =
        clipped_distances(layout.diagonals(), -kFar, options_.clamp > 0 ? options_.clamp : kFar);
    const auto of = [&](int64_t kind) {
      return parameters.subspan(static_cast<size_t>(kind * biases()));
    };
    const at::Tensor rows =
        at::linear(sinusoids_.rows(distances, 1, operands.q), of_layer(of(2), layer));
    const TableOperand table = {
        .rows = rows.view({rows.size(0), shape_.heads, shape_.head_dim}).transpose(0, 1),
        .row_at = distances.row_at};
    const int64_t bias = options_.untied ? layer : 0;
    place_with_biases(operands, table, of_layer(of(0), bias), of_layer(of(1), bias));
  }

 private:
  int64_t biases() const { return options_.untied ? shape_.layers : 1; }

  ModelShape shape_;
  TransformerXlOptions options_;
  SinusoidTable sinusoids_;
};

std::unique_ptr<Method> make_transformer_xl(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("transformer-xl", json);
  constexpr int64_t kMost = int64_t{1} << 40;
  if (options.flag("same_length")) {
    nlohmann::json rest = json;
    rest["same_length"] = false;
    rest["mem_len"] = nullptr;
    return make_method("window", shape,
                       {{"window", options.integer("mem_len", 1, kMost)},
                        {"of", "transformer-xl"},
                        {"options", rest}});
  }
  if (!json.at("mem_len").is_null()) options.refuse("mem_len", "null without same_length");
  return std::make_unique<TransformerXl>(
      shape, TransformerXlOptions{.untied = options.flag("untie_r"),
                                  .clamp = options.integer("clamp_len", -1, kMost),
                                  .init_std = options.number("init_std", 0, 1e6)});
}

}  // namespace

MethodInfo transformer_xl_method() {
  return {.name = "transformer-xl",
          .summary = "Projected sinusoids of the distance, two biases (Dai et al. 2019)",
          .formula =
              "s_ij = ( (q_i + u) . k_j + (q_i + v) . W_R R[i - j] ) / sqrt(d); "
              "w_f = 10000^(-2f / C)",
          .defaults = R"({"untie_r": true, "clamp_len": -1, "same_length": false, "mem_len": null,
                          "init_std": 0.02})",
          .make = make_transformer_xl};
}

}  // namespace sextant
