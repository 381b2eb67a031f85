// floater: position vectors follow a trained differential equation and are added in every layer.
//
// Liu, Yu, Dhillon and Hsieh 2020 (arXiv 2003.09229): p(t) = p(s) + integral of h(tau, p(tau)), one
// state for the queries, keys and values of each layer. The vectors are added after the
// projections:
//
//   q_i = W_q x_i + b_q[i],  k_j = W_k x_j + b_k[j],  v_j = W_v x_j + b_v[j]
//
// One h serves all layers, queries, keys and values. recurrences.h has the solver and both flows.
// The authors' code integrates only every 400 training steps and has gradients in one step of 400;
// here every call integrates. Their code ends at 255 positions; this one has no limit.
#include <ATen/TensorOperators.h>
#include <ATen/ops/select.h>
#include <ATen/ops/slice.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/recurrences.h"

namespace sextant {
namespace {

class Floater final : public Method {
 public:
  Floater(const ModelShape& shape, Flow flow, FlowGradient gradient, int64_t channels)
      : layers_(shape.layers),
        width_(shape.width),
        flow_(flow),
        gradient_(gradient),
        channels_(channels) {}

  bool relative() const override { return false; }
  bool changes_keys() const override { return true; }
  // Initial values as in the official code: Xavier's range, from each tensor's fan-in and fan-out.
  std::vector<ParameterSpec> parameters() const override {
    const auto xavier = [](double fan_in, double fan_out) {
      return std::sqrt(6 / (fan_in + fan_out));
    };
    const double start = xavier(static_cast<double>(layers_ * width_), 3.0 * width_);
    std::vector<ParameterSpec> specs = {
        ParameterSpec::uniform("proj_bias", {3, layers_, width_}, start)};
    if (flow_ == Flow::kLinear) {
      const double std = std::sqrt(2 / (2.0 * width_ + 1));
      for (const char* layer : {"layers.0.linear.", "layers.2.linear."}) {
        specs.push_back(
            ParameterSpec::normal(std::string(layer) + "weight", {width_, width_ + 1}, std));
        specs.push_back({.name = std::string(layer) + "bias", .sizes = {width_}});
      }
      return specs;
    }
    const double bound = xavier(5.0 * (layers_ + 1), 5.0 * channels_);
    const double bound_back = xavier(5.0 * layers_, 5.0 * (channels_ + 1));
    specs.push_back(
        ParameterSpec::uniform("layers.0.conv.weight", {channels_, layers_ + 1, 5}, bound));
    specs.push_back({.name = "layers.0.conv.bias", .sizes = {channels_}});
    specs.push_back(
        ParameterSpec::uniform("layers.2.conv_tr.weight", {channels_ + 1, layers_, 5}, bound_back));
    specs.push_back({.name = "layers.2.conv_tr.bias", .sizes = {layers_}});
    return specs;
  }

  bool adds_to_values() const override { return true; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    // The linear flow has no terms between layers, so the rows of this layer are enough.
    const bool alone = flow_ == Flow::kLinear;
    const at::Tensor start = alone ? parameters[0].slice(1, layer, layer + 1) : parameters[0];
    const at::Tensor rows =
        floater_positions(start, parameters.subspan(1), injected_rows(layout), flow_, gradient_);
    add_layer_positions(operands, layout, alone ? rows.squeeze(2) : rows.select(2, layer));
  }

 private:
  int64_t layers_, width_;
  Flow flow_;
  FlowGradient gradient_;
  int64_t channels_;
};

std::unique_ptr<Method> make_floater(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("floater", json);
  check_injectable("floater", shape);
  const Flow flow =
      options.choice("flow", {"linear", "convolution"}) == 0 ? Flow::kLinear : Flow::kConvolution;
  const FlowGradient gradient = options.choice("gradient", {"solver", "adjoint"}) == 0
                                    ? FlowGradient::kSolver
                                    : FlowGradient::kAdjoint;
  const double multiplier = options.number("channel_multiplier", 0, 1e3);
  if (flow == Flow::kConvolution && shape.width % 2 != 0)
    options.refuse("flow", "\"linear\", as the width is odd");
  const auto channels =
      static_cast<int64_t>(std::max(1.0, static_cast<double>(shape.layers) * multiplier));
  return std::make_unique<Floater>(shape, flow, gradient, channels);
}

}  // namespace

MethodInfo floater_method() {
  return {.name = "floater",
          .summary = "A neural differential equation of positions in every layer (Liu et al. 2020)",
          .formula =
              "p(t) = p(s) + integral from s to t of h(tau, p(tau)) d tau; "
              "q_i = W_q x_i + p_q(i), k_j = W_k x_j + p_k(j), v_j = W_v x_j + p_v(j)",
          .defaults = R"({"flow": "linear", "gradient": "solver", "channel_multiplier": 2.0})",
          .make = make_floater,
          .tests = {.shares_key_heads = false, .smooth = false, .integrates = true}};
}

}  // namespace sextant
