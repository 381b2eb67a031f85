// beit: a trained bias for each pair of distances on a grid, with a class token before it.
//
// Bao et al. 2021 (BEiT, arXiv 2106.08254; data2vec-vision), with the table of Swin:
//
//   s_ij = q_i.k_j / sqrt(d) + T[(y_i - y_j + H - 1) (2 W - 1) + x_i - x_j + W - 1, h]
//
// The class token is the first row. The last three rows of the table are those of the class token
// as query, of the class token as key, and of both (BeitRelativePositionBias in transformers).
// Positions of one's own have the class token at -1, -1.
#include <nlohmann/json_fwd.hpp>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/grid.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class Beit final : public Method {
 public:
  Beit(const ModelShape& shape, const Grid& grid) : shape_(shape), pairs_{grid} {}

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (int64_t n = 0; n < shape_.layers; ++n)
      specs.push_back(
          {.name = "layer." + std::to_string(n) +
                   ".attention.attention.relative_position_bias.relative_position_bias_table",
           .sizes = {pairs_.count() + 3, shape_.heads}});
    return specs;
  }

  bool relative() const override { return false; }
  bool reads_rotary_positions() const override { return true; }

  // The positions of class tokens are so far from the places' that distances to them are of their
  // own: with n = last + 1 and places at 0 to n - 1, the class token is at 4 n as a query and at
  // -5 n as a key.
  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const GridPositions positions = grid_positions("beit", layout, pairs_.grid, 1);
    const int64_t n = pairs_.last() + 1;
    const auto with_class = [&](const at::Tensor& on_both, int64_t of_class) {
      return at::where(on_both.select(1, 0) < 0, at::full({}, of_class, at::kLong),
                       pairs_.positions(on_both));
    };
    MadeAxis made("beit", with_class(positions.queries, 4 * n), with_class(positions.keys, -5 * n));
    made.axis.bias_rows = made.rows([&](int64_t distance) -> int64_t {
      if (distance == 9 * n) return pairs_.count() + 2;
      if (distance >= 5 * n && distance < 6 * n) return pairs_.count() + 1;
      if (distance > 3 * n && distance <= 4 * n) return pairs_.count();
      return std::abs(distance) < n ? distance + pairs_.last() : -1;
    });
    add_axis(operands, made.axis);
    operands.axis_bias = of_layer(parameters, layer).transpose(0, 1);
  }

 private:
  ModelShape shape_;
  PairDistances pairs_;
};

std::unique_ptr<Method> make_beit(const ModelShape& shape, const nlohmann::json& json) {
  return std::make_unique<Beit>(shape, grid_option(Options("beit", json), "grid"));
}

}  // namespace

MethodInfo beit_method() {
  return {.name = "beit",
          .summary = "A trained bias by both distances, with a class token (Bao et al. 2021)",
          .formula = "s_ij = q_i . k_j / sqrt(d) + T[y_i - y_j, x_i - x_j, h]",
          .defaults = R"({"grid": null})",
          .make = make_beit,
          .tests = {.options = R"({"grid": [820, 5]})"},
          .grid_option = "grid",
          .rows_before_grid = 1};
}

}  // namespace sextant
