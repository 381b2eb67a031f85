// alibi: a penalty on distance, linear, with a slope of its own for each head.
//
// Press, Smith and Lewis 2021 (arXiv 2108.12409): s_ij = q_i.k_j / sqrt(d) - m_h (i - j), where for
// n = 2^a heads m_h = 2^(-max_bias (h + 1) / n), h = 0 .. n - 1, max_bias = 8; for other n see
// alibi_slopes(). No parameters.
//
// The paper is causal. Keys in the future get -m_h future_scale (j - i): 1 is symmetric, as in MPT and
// other bidirectional models; with other values the two sides have slopes of their own.
//
// The bias comes from integer distances in double precision and is rounded once. Official code adds
// m_h j instead: the same after softmax, but in bfloat16 neighbouring keys share one bias from position
// 257 on. The departures of Falcon (slope / sqrt d) and BLOOM (left padding) are not here.
#include <ATen/ops/empty.h>

#include <nlohmann/json_fwd.hpp>

#include "sextant/position/slopes.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/options.h"

namespace sextant {
namespace {

class Alibi final : public Method {
 public:
  Alibi(std::vector<double> slopes, double future_scale)
      : slopes_(std::move(slopes)), future_scale_(future_scale) {}

  void place(Operands& operands, const Placement& placement, int64_t, Parameters) const override {
    const Diagonals diagonals = placement.diagonals();
    const auto heads = static_cast<int64_t>(slopes_.size());
    const at::Tensor bias = at::empty({heads, diagonals.count}, at::kDouble);
    double* to = bias.data_ptr<double>();
    for (const double slope : slopes_)
      for (int64_t n = 0; n < diagonals.count; ++n) {
        const auto distance = static_cast<double>(diagonals.distance(n));
        *to++ = distance < 0 ? slope * future_scale_ * distance : -slope * distance;
      }
    operands.bias.rows = bias.to(operands.q.options());
  }

 private:
  std::vector<double> slopes_;
  double future_scale_;
};

std::unique_ptr<Method> make(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("alibi", json);
  return std::make_unique<Alibi>(alibi_slopes(shape.heads, options.number("max_bias", 1e-6, 1e6)),
                                 options.number("future_scale", 0, 1e6));
}

}  // namespace

MethodInfo alibi_method() {
  return {.name = "alibi",
          .summary = "Attention with linear biases (Press et al. 2021)",
          .defaults = R"({"max_bias": 8.0, "future_scale": 1.0})",
          .make = make};
}

}  // namespace sextant
