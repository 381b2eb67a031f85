// shaw: a trained vector per clipped distance is added to the key, and another to the value.
//
// Shaw, Uszkoreit and Vaswani 2018 (arXiv 1803.02155), with r = clip(j - i, -K, K):
//
//   s_ij = q_i.(k_j + a^K_r) / sqrt(d),   o_i = sum_j p_ij (v_j + a^V_r)
//
// Each layer has its own tables of 2K + 1 rows, shared by the heads; the last row belongs to keys K
// or more to the right (tensor2tensor's order). All distances beyond K on one side share a row. The
// factor 1/sqrt(d) applies to both terms of the score. "values": false omits a^V, which costs
// nothing according to the paper.
#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/position/row_map.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class Shaw final : public Method {
 public:
  Shaw(int64_t layers, int64_t head_dim, int64_t clip, bool values)
      : layers_(layers), head_dim_(head_dim), clip_(clip), values_(values) {}

  // The tables for keys of all layers, then the tables for values.
  std::vector<ParameterSpec> parameters() const override {
    const int64_t rows = 2 * clip_ + 1;
    const double range = std::sqrt(6.0 / static_cast<double>(rows + head_dim_));  // Glorot's
    std::vector<ParameterSpec> specs;
    const auto add = [&](const std::string& side) {
      for (int64_t layer = 0; layer < layers_; ++layer)
        specs.push_back(ParameterSpec::uniform(
            "layer_" + std::to_string(layer) + ".relative_positions_" + side + ".embeddings",
            {rows, head_dim_}, range));
    };
    add("keys");
    if (values_) add("values");
    return specs;
  }

  bool adds_to_values() const override { return values_; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const auto layers = static_cast<size_t>(layers_);
    const at::Tensor row_at =
        tensor_of(clipped_row_map(layout.diagonals(), clip_, RowOrder::kKeyMinusQuery));
    const auto table = [&](Parameters tables) {
      return TableOperand{.rows = of_layer(tables, layer).unsqueeze(0), .row_at = row_at};
    };
    operands.on_query = table(parameters.first(layers));
    if (values_) operands.on_value = table(parameters.subspan(layers));
  }

 private:
  int64_t layers_, head_dim_, clip_;
  bool values_;
};

std::unique_ptr<Method> make_shaw(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("shaw", json);
  return std::make_unique<Shaw>(shape.layers, shape.head_dim,
                                options.integer("clip", 0, int64_t{1} << 20),
                                options.flag("values"));
}

}  // namespace

MethodInfo shaw_method() {
  return {.name = "shaw",
          .summary = "Trained vectors per clipped distance on keys and values (Shaw et al. 2018)",
          .formula =
              "r = clip(j - i, -K, K); s_ij = q_i . (k_j + aK[r]) / sqrt(d); o_i = sum_j "
              "softmax_j(s_ij) * (v_j + aV[r])",
          .defaults = R"({"clip": 16, "values": true})",
          .make = make_shaw,
          .tests = {.options = R"({"clip": 3})"}};
}

}  // namespace sextant
