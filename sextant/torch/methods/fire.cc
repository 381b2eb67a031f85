// fire: a small network maps a distance, relative to the query's reach, to a bias.
//
// Li, You, Guruganesh, Ainslie et al. 2023 (FIRE, arXiv 2310.04418): s_ij = q_i.k_j / sqrt(d) + b,
//
//   b_h(i, j) = MLP_h( psi(i - j) / (psi(max(i, L)) + eps) ),    psi(x) = ln(|c x| + 1)
//
// The network has one input, one layer of ReLUs and one output per head; c and the threshold L =
// |L_multiplier threshold| are trained too; eps = 1e-6. Each layer has its own network; per_layer
// false is the paper's FIRE-S, one network for all layers. The distance to keys in the future is |i
// - j| (as in the code; the paper is causal).
//
// The network is piecewise linear in its input and costs one multiplication and one addition per
// pair and head (relu_network.h).
//
// For queries at positions up to L, the bias depends on the distance only and is one table. Beyond
// L the network's input stays in 0 .. 1, hence it extends past the training length, but each query
// has its own biases (LazyQueryBias), which the backward pass computes again.
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/relu_network.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/device_constants.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

using Init = ParameterSpec::Init;

constexpr size_t kParameters = 6;
constexpr double kEpsilon = 1e-6;

struct FireOptions {
  int64_t networks = 1, heads = 1, hidden = 32;
  double c = 0.1, threshold = 512;
};

class Fire final : public Method {
 public:
  explicit Fire(const FireOptions& options) : options_(options) {}

  bool relative() const override { return false; }

  std::vector<ParameterSpec> parameters() const override {
    const int64_t width = options_.hidden;
    const double bound = 1 / std::sqrt(static_cast<double>(width));  // torch.nn.Linear's range
    std::vector<ParameterSpec> specs;
    for (int64_t n = 0; n < options_.networks; ++n) {
      const std::string of = options_.networks > 1 ? "layers." + std::to_string(n) + "." : "";
      const auto uniform = [&](const char* name, std::vector<int64_t> sizes, double high) {
        specs.push_back(ParameterSpec::uniform(of + name, std::move(sizes), high));
      };
      specs.push_back({.name = of + "c", .initial = tensor_of(std::vector{options_.c}, {})});
      specs.push_back({.name = of + "L_multiplier", .init = Init::kOnes});
      uniform("mlp.0.weight", {width, 1}, 1);
      uniform("mlp.0.bias", {width}, 1);
      uniform("mlp.2.weight", {options_.heads, width}, bound);
      uniform("mlp.2.bias", {options_.heads}, bound);
    }
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const size_t first = options_.networks > 1 ? kParameters * static_cast<size_t>(layer) : 0;
    of_layer(parameters, static_cast<int64_t>(first + kParameters) - 1);
    const Parameters own = parameters.subspan(first, kParameters);
    const Diagonals diagonals = layout.diagonals();
    const auto type = wide_type(operands.q);
    const auto rows = [threshold = options_.threshold, type](const std::vector<at::Tensor>& inputs,
                                                             const QueryBlock& queries,
                                                             const Diagonals& distances) {
      return biases(inputs, threshold, queries.positions, distances, type);
    };
    operands.lazy_query_bias = {.inputs = {own.begin(), own.end()},
                                .rows = rows,
                                .diagonals = diagonals,
                                .from = first_from(own[1], options_.threshold)};
    operands.bias.rows =
        rows(operands.lazy_query_bias.inputs, {.positions = {0}}, diagonals).select(1, 0);
  }

 private:
  // The first position not below L. At L itself the maximum passes half of its gradient to L, as
  // torch's does. L of a device is copied, so the call waits for it; a meta tensor has no L.
  static int64_t first_from(const at::Tensor& multiplier, double threshold) {
    constexpr double kFar = 0x1p52;
    const double first = multiplier.is_meta() ? kFar : limit(multiplier, threshold).item<double>();
    return static_cast<int64_t>(first < kFar ? std::ceil(first) : kFar);
  }

  // L
  static at::Tensor limit(const at::Tensor& multiplier, double threshold) {
    return (multiplier.to(at::kDouble) * threshold).abs();
  }

  // [heads, positions, diagonals]. The network's input is computed in float64 and then rounded to
  // `type`.
  static at::Tensor biases(const std::vector<at::Tensor>& inputs, double threshold,
                           const std::vector<int64_t>& positions, const Diagonals& diagonals,
                           at::ScalarType type) {
    const at::Tensor c = inputs[0].to(at::kDouble);
    const auto psi = [&](const at::Tensor& x) { return at::log1p((c * x).abs()); };
    const at::Tensor at_positions =
        on_device_of(c, at::tensor(positions, at::kLong).to(at::kDouble).unsqueeze(1));
    const at::Tensor reach = at::maximum(at_positions, limit(inputs[1], threshold));
    const at::Tensor x = psi(sizes_of_distances(diagonals, c)) / (psi(reach) + kEpsilon);
    return evaluate({inputs[2], inputs[3], inputs[4], inputs[5]}, x.to(type))
        .view({inputs[4].size(0), x.size(0), x.size(1)});
  }

  FireOptions options_;
};

std::unique_ptr<Method> make_fire(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("fire", json);
  return std::make_unique<Fire>(
      FireOptions{.networks = options.flag("per_layer") ? std::max<int64_t>(shape.layers, 1) : 1,
                  .heads = shape.heads,
                  .hidden = options.integer("hidden", 1, 1 << 20),
                  .c = options.number("c", 1e-12, 1e12),
                  .threshold = options.number("threshold", 0, 0x1p52)});
}

}  // namespace

MethodInfo fire_method() {
  return {.name = "fire",
          .summary = "A network of distance over the query's reach (FIRE, Li et al. 2023)",
          .formula =
              "s_ij = q_i . k_j / sqrt(d) + MLP_h( psi(i - j) / (psi(max(i, L)) + 1e-6) ); "
              "psi(x) = ln(|c x| + 1)",
          .defaults = R"({"hidden": 32, "c": 0.1, "threshold": 512.0, "per_layer": true})",
          .make = make_fire,
          // The tests' random multiplier makes the learned threshold L 2.5. fire_test compares
          // gradients with those of the formula.
          .tests = {.options = R"({"threshold": 25})", .smooth = false}};
}

}  // namespace sextant
