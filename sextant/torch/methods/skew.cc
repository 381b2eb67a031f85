// skew: a trained vector per head and distance, and zeros beyond the table.
//
// Huang et al. 2018 (Music Transformer, arXiv 1809.04281); tensor2tensor's dot_product_relative_v2:
//
//   s_ij = q_i.(k_j + a^K_{j-i}) / sqrt(d),   o_i = sum_j p_ij (v_j + a^V_{j-i})
//
// The table of a head has rows for the distances 0 .. M - 1 to the past, M = max_relative_position,
// with distance 0 last; "unmasked" adds as many to the right, 2M - 1 rows. Distances outside have a
// vector of zeros and not the last row: this is not Shaw's method under another name, and beyond M
// a model cannot see the order of keys. heads_share_relative_embedding: one table for the heads of
// a layer. add_relative_to_values adds a^V, which is off in the released settings.
//
// The name refers to the paper's trick: the product of queries and table, a matrix shifted row by
// row, replaces one vector per pair. Here a row map does this.
#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/base/error.h"
#include "sextant/position/row_map.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

struct SkewOptions {
  int64_t positions = 0;
  bool share_heads = false, values = false, unmasked = false;
};

class Skew final : public Method {
 public:
  Skew(const ModelShape& shape, const SkewOptions& options) : shape_(shape), options_(options) {}

  // The tables for keys of all layers, then the tables for values.
  std::vector<ParameterSpec> parameters() const override {
    std::vector<int64_t> sizes = {rows(), shape_.head_dim};
    if (!options_.share_heads) sizes.insert(sizes.begin(), shape_.heads);
    std::vector<ParameterSpec> specs;
    const auto add = [&](const std::string& side) {
      for (int64_t layer = 0; layer < shape_.layers; ++layer)
        specs.push_back(ParameterSpec::normal(
            "layer_" + std::to_string(layer) + "." + side + "_relative_embeddings", sizes,
            1 / std::sqrt(static_cast<double>(shape_.head_dim))));
    };
    add("key");
    if (options_.values) add("value");
    return specs;
  }

  bool adds_to_values() const override { return options_.values; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    if (!options_.unmasked && !layout.causal)
      fail("skew: unmasked: expected true without a causal mask, but got false");
    const LinearRows linear = {.rows = rows(),
                               .zero_distance = options_.positions - 1,
                               .order = RowOrder::kKeyMinusQuery,
                               .outside = Outside::kZero};
    const at::Tensor row_at = tensor_of(row_map(layout.diagonals(), linear));
    const auto table = [&](Parameters tables) {
      const at::Tensor& rows = of_layer(tables, layer);
      const at::Tensor by_head = options_.share_heads ? rows.unsqueeze(0) : rows;
      return TableOperand{.rows = at::constant_pad_nd(by_head, {0, 0, 0, 1}), .row_at = row_at};
    };
    const auto layers = static_cast<size_t>(shape_.layers);
    operands.on_query = table(parameters.first(layers));
    if (options_.values) operands.on_value = table(parameters.subspan(layers));
  }

 private:
  int64_t rows() const {
    return options_.unmasked ? 2 * options_.positions - 1 : options_.positions;
  }

  ModelShape shape_;
  SkewOptions options_;
};

std::unique_ptr<Method> make_skew(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("skew", json);
  return std::make_unique<Skew>(
      shape, SkewOptions{.positions = options.integer_or("max_relative_position",
                                                         shape.train_length, 1, int64_t{1} << 29),
                         .share_heads = options.flag("heads_share_relative_embedding"),
                         .values = options.flag("add_relative_to_values"),
                         .unmasked = options.flag("unmasked")});
}

}  // namespace

MethodInfo skew_method() {
  return {.name = "skew",
          .summary = "Trained vectors per head and distance, none beyond the table (Huang 2018)",
          .formula =
              "s_ij = q_i . (k_j + aK[h, j - i]) / sqrt(d); "
              "o_i = sum_j softmax_j(s_ij) * (v_j + aV[h, j - i])",
          .defaults = R"({"max_relative_position": null, "heads_share_relative_embedding": false,
                          "add_relative_to_values": false, "unmasked": false})",
          .make = make_skew,
          .tests = {.options = R"({"unmasked": true})"}};
}

}  // namespace sextant
