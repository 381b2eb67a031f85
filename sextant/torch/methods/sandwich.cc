// sandwich: the inner product of sinusoidal position vectors as a bias; no parameters.
//
// Chi, Fan, Rudnicky and Ramadge 2022 (arXiv 2212.10356): s_ij = q_i.k_j / sqrt(d) + c(i - j) / r_h
// with c(d) = sum_i cos(d / 10000^(2i/width)), r_h = ratio (h + 1) / heads, ratio 8
// (sextant/position/sandwich.h). `sinusoid_width` is 128 whatever the head size. c is even, so it
// serves both directions.
//
// Reviews print q_m.k_n + lambda p_m.p_n with one lambda. Option `strength` is that lambda, for all
// heads instead of 1 / r_h; p_m.p_n is c(m - n) with `first_index` 0.
//
// The authors' training code is not published. i starts at `first_index` = 1 in the paper's
// equation and in NeMo, and at 0 in a plain product of sinusoids. Past the training length c keeps
// falling slowly, with ripples.
#include <ATen/TensorOperators.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "sextant/position/sandwich.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

class Sandwich final : public Method {
 public:
  // strengths: [heads], the factor of c in each head
  Sandwich(std::vector<double> strengths, int64_t width, int64_t first)
      : strengths_(std::move(strengths)), width_(width), first_(first) {}

  void apply(TensorOperands& operands, const Layout& layout, int64_t, Parameters) const override {
    const Diagonals diagonals = layout.diagonals();
    std::vector<int64_t> distances;
    for (int64_t n = 0; n < diagonals.count; ++n) distances.push_back(diagonals.distance(n));
    const std::vector<double> curve = sandwich_curve(distances, width_, first_);
    const at::Tensor rows = tensor_of(strengths_, {static_cast<int64_t>(strengths_.size()), 1}) *
                            tensor_of(curve, {1, static_cast<int64_t>(curve.size())});
    operands.bias.rows = on_device_of(operands.q, rows.to(operands.q.scalar_type()));
  }

 private:
  std::vector<double> strengths_;
  int64_t width_, first_;
};

constexpr double kLeastStrength = 1e-6, kMostStrength = 1e6;

std::vector<double> strengths(const Options& options, int64_t heads) {
  const double ratio = options.number("ratio", kLeastStrength, kMostStrength);
  const std::optional<double> strength =
      options.optional_number("strength", kLeastStrength, kMostStrength);
  if (!strength) return sandwich_slopes(heads, ratio);
  if (ratio != kSandwichRatio)
    options.refuse("ratio", "8, the default, as strength is the factor of every head");
  return std::vector<double>(static_cast<size_t>(heads), *strength);
}

std::unique_ptr<Method> make_sandwich(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("sandwich", json);
  const int64_t width = options.integer("sinusoid_width", 2, 1 << 20);
  if (width % 2 != 0) options.refuse("sinusoid_width", "an even number");
  return std::make_unique<Sandwich>(strengths(options, shape.heads), width,
                                    options.integer("first_index", 0, 1));
}

}  // namespace

MethodInfo sandwich_method() {
  return {
      .name = "sandwich",
      .summary = "Sinusoids' own product as a bias (Chi et al. 2022)",
      .formula =
          "s_ij = q_i . k_j / sqrt(d) + c(i - j) / r_h; c(t) = sum_i cos(t / 10000^(2i / w)); r_h "
          "= ratio (h + 1) / heads",
      .defaults = R"({"sinusoid_width": 128, "first_index": 1, "strength": null, "ratio": 8.0})",
      .make = make_sandwich};
}

}  // namespace sextant
