// alibi-2d: ALiBi on a grid, by the Euclidean distance.
//
// Fuller, Millard and Green 2023 (CROMA, arXiv 2311.00566):
//
//   s_ij = q_i.k_j / sqrt(d) - m_h sqrt((y_i - y_j)^2 + (x_i - x_j)^2)
//
// with the slopes m_h of ALiBi. Nothing is trained, so a larger grid needs no interpolation.
#include <ATen/ops/empty.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>

#include "sextant/base/hypot.h"
#include "sextant/position/slopes.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/grid.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class Alibi2d final : public Method {
 public:
  Alibi2d(std::vector<double> slopes, const Grid& grid)
      : slopes_(std::move(slopes)), pairs_{grid} {}

  bool relative() const override { return false; }
  bool reads_rotary_positions() const override { return true; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t, Parameters) const override {
    const GridPositions positions = grid_positions("alibi-2d", layout, pairs_.grid);
    MadeAxis made = pairs_.axis("alibi-2d", positions);
    int64_t row = 0;  // a row for each distance that occurs
    made.axis.bias_rows = made.rows([&](int64_t) { return row++; });
    add_axis(operands, made.axis);
    std::vector<double> biases;
    for (const double slope : slopes_)
      for (int64_t n = 0; n < made.distances; ++n) {
        const int64_t number = made.distance(n);
        biases.push_back(-slope * hypot(static_cast<double>(pairs_.vertical(number)),
                                        static_cast<double>(pairs_.horizontal(number))));
      }
    operands.axis_bias =
        tensor_of(biases, {static_cast<int64_t>(slopes_.size()), made.distances}, operands.q)
            .to(operands.q.options());
  }

 private:
  std::vector<double> slopes_;
  PairDistances pairs_;
};

std::unique_ptr<Method> make_alibi_2d(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("alibi-2d", json);
  return std::make_unique<Alibi2d>(alibi_slopes(shape.heads, options.number("max_bias", 1e-6, 1e6)),
                                   grid_option(options, "grid"));
}

}  // namespace

MethodInfo alibi_2d_method() {
  return {.name = "alibi-2d",
          .summary = "Linear biases by Euclidean distance on a grid (Fuller et al. 2023)",
          .formula = "s_ij = q_i . k_j / sqrt(d) - m_h sqrt((y_i - y_j)^2 + (x_i - x_j)^2)",
          .defaults = R"({"grid": null, "max_bias": 8.0})",
          .make = make_alibi_2d,
          .tests = {.options = R"({"grid": [820, 5]})"},
          .grid_option = "grid"};
}

}  // namespace sextant
