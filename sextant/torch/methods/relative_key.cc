// relative-key: a trained vector per distance meets the query, or both the query and the key.
//
// Huang et al. 2020 (arXiv 2009.13658, methods 3 and 4), BERT in Hugging Face's code:
//
//   s_ij = ( q_i.k_j + q_i.e_r ) / sqrt(d)             position_embedding_type "relative_key"
//   s_ij = ( q_i.k_j + q_i.e_r + k_j.e_r ) / sqrt(d)   "relative_key_query"; r = i - j
//
// Each layer has its own table of 2n - 1 rows, shared by the heads, n = max_position_embeddings.
// The first row belongs to keys n - 1 to the right: the order is the reverse of Shaw's. Distances
// are not clipped: a distance of n or more is an error; in the official code it is an index out of
// range.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/base/error.h"
#include "sextant/position/row_map.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class RelativeKey final : public Method {
 public:
  RelativeKey(const ModelShape& shape, int64_t positions, bool keys_too, double init_std)
      : layers_(shape.layers),
        head_dim_(shape.head_dim),
        positions_(positions),
        keys_too_(keys_too),
        init_std_(init_std) {}

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (int64_t layer = 0; layer < layers_; ++layer)
      specs.push_back(ParameterSpec::normal(
          "layer." + std::to_string(layer) + ".attention.self.distance_embedding.weight",
          {2 * positions_ - 1, head_dim_}, init_std_));
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const Diagonals diagonals = layout.diagonals();
    for (const int64_t distance : {layout.nearest_distance(), layout.farthest_distance()})
      if (diagonals.count > 0 && (distance <= -positions_ || distance >= positions_))
        fail("relative-key: distance: expected less than " + std::to_string(positions_) +
             " (option max_position_embeddings) to either side, but got " +
             std::to_string(distance));
    const LinearRows rows = {.rows = 2 * positions_ - 1,
                             .zero_distance = positions_ - 1,
                             .order = RowOrder::kQueryMinusKey,
                             .outside = Outside::kRefuse};
    operands.on_query = {.rows = of_layer(parameters, layer).unsqueeze(0),
                         .row_at = tensor_of(row_map(diagonals, rows))};
    if (keys_too_) operands.on_key = operands.on_query;
  }

 private:
  int64_t layers_, head_dim_, positions_;
  bool keys_too_;
  double init_std_;
};

std::unique_ptr<Method> make_relative_key(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("relative-key", json);
  return std::make_unique<RelativeKey>(
      shape, options.integer_or("max_position_embeddings", shape.train_length, 1, int64_t{1} << 29),
      options.choice("position_embedding_type", {"relative_key", "relative_key_query"}) == 1,
      options.number("init_std", 0, 1e6));
}

}  // namespace

MethodInfo relative_key_method() {
  return {.name = "relative-key",
          .summary = "Trained vectors per distance on queries, or queries and keys (BERT, 2020)",
          .formula = "s_ij = ( q_i . k_j + q_i . e[i - j] ) / sqrt(d)",
          .defaults = R"({"position_embedding_type": "relative_key",
                          "max_position_embeddings": null, "init_std": 0.02})",
          .make = make_relative_key,
          .tests = {.options = R"({"max_position_embeddings": 64})"}};
}

}  // namespace sextant
