// swin: a trained bias for each pair of distances on the two axes of a window.
//
// Liu et al. 2021 (Swin, arXiv 2103.14030):
//
//   s_ij = q_i.k_j / sqrt(d) + T[(y_i - y_j + H - 1) (2 W - 1) + x_i - x_j + W - 1, h]
//
// Each layer has its own table of (2 H - 1) (2 W - 1) rows. With "continuous": true the table is
// that of Swin v2 (Liu et al. 2022, 2111.09883), which a network of the log-spaced distances
// computes, so that windows may grow; queries and keys are then normalised, and a trained factor of
// each head takes the place of 1/sqrt(d):
//
//   T = 16 sigmoid(W_2 relu(W_1 (c_y, c_x) + b_1)),   c = sign(x) log2(1 + |x|) / log2 8
//   x = 8 (y_i - y_j) / (P - 1),   P: the size of the window in training ("trained")
//   s_ij = min(e^tau_h, 100) cos(q_i, k_j) + T[...]
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/grid.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

constexpr int64_t kHidden = 512;

// The coordinates of each row of the table, float64 [rows, 2].
at::Tensor log_coordinates(const PairDistances& pairs, const Grid& trained) {
  at::Tensor all = at::empty({pairs.count(), 2}, at::kDouble);
  double* to = all.data_ptr<double>();
  const auto coordinate = [](int64_t distance, int64_t size) {
    const double x = size > 1 ? 8 * static_cast<double>(distance) / static_cast<double>(size - 1)
                              : 8 * static_cast<double>(distance);
    return std::copysign(std::log2(1 + std::abs(x)) / 3, x);
  };
  for (int64_t number = -pairs.last(); number <= pairs.last(); ++number) {
    *to++ = coordinate(pairs.vertical(number), trained.height);
    *to++ = coordinate(pairs.horizontal(number), trained.width);
  }
  return all;
}

at::Tensor normalized(const at::Tensor& x) {
  return x / x.norm(2, {-1}, /*keepdim=*/true).clamp_min(1e-12);
}

class Swin final : public Method {
 public:
  Swin(const ModelShape& shape, const Grid& window, const Grid& trained, bool continuous)
      : shape_(shape), pairs_{window}, trained_(trained), continuous_(continuous) {}

  // Each layer has its table, or the factor of each head and the network.
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (int64_t n = 0; n < shape_.layers; ++n) {
      const std::string layer = "layers." + std::to_string(n) + ".";
      const auto normal = [&](const char* name, std::vector<int64_t> sizes) {
        specs.push_back(ParameterSpec::normal(layer + name, std::move(sizes), 0.02));
      };
      if (!continuous_) {
        normal("relative_position_bias_table", {pairs_.count(), shape_.heads});
        continue;
      }
      const std::vector<double> start(static_cast<size_t>(shape_.heads), std::log(10.0));
      specs.push_back({.name = layer + "logit_scale",
                       .sizes = {shape_.heads, 1, 1},
                       .initial = tensor_of(start, {shape_.heads, 1, 1})});
      normal("continuous_position_bias_mlp.0.weight", {kHidden, 2});
      normal("continuous_position_bias_mlp.0.bias", {kHidden});
      normal("continuous_position_bias_mlp.2.weight", {shape_.heads, kHidden});
    }
    return specs;
  }

  bool relative() const override { return false; }
  bool reads_rotary_positions() const override { return true; }
  bool changes_keys() const override { return continuous_; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const GridPositions positions = grid_positions("swin", layout, pairs_.grid);
    MadeAxis made = pairs_.axis("swin", positions);
    made.axis.bias_rows = made.rows([&](int64_t distance) { return distance + pairs_.last(); });
    add_axis(operands, made.axis);
    if (!continuous_) {
      operands.axis_bias = of_layer(parameters, layer).transpose(0, 1);
      return;
    }
    const auto own = parameters.subspan(static_cast<size_t>(4 * layer));
    const at::Tensor factor = own[0].clamp_max(std::log(100.0)).exp();
    operands.q = normalized(operands.q) * factor;
    operands.k = normalized(operands.k);
    use_scale(operands, 1);
    const at::Tensor coordinates = log_coordinates(pairs_, trained_).to(own[1].options());
    const at::Tensor table = at::linear(at::relu(at::linear(coordinates, own[1], own[2])), own[3]);
    operands.axis_bias = 16 * at::sigmoid(table).transpose(0, 1);
  }

 private:
  ModelShape shape_;
  PairDistances pairs_;
  Grid trained_;
  bool continuous_;
};

std::unique_ptr<Method> make_swin(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("swin", json);
  const Grid window = grid_option(options, "window");
  return std::make_unique<Swin>(
      shape, window, options.value("trained").is_null() ? window : grid_option(options, "trained"),
      options.flag("continuous"));
}

}  // namespace

MethodInfo swin_method() {
  return {.name = "swin",
          .summary = "A trained bias by both distances in a window (Liu et al. 2021)",
          .formula = "s_ij = q_i . k_j / sqrt(d) + T[y_i - y_j, x_i - x_j, h]",
          .defaults = R"({"window": null, "continuous": false, "trained": null})",
          .make = make_swin,
          .tests = {.options = R"({"window": [820, 5]})"},
          .grid_option = "window"};
}

}  // namespace sextant
