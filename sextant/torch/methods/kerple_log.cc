// kerple-log: a trained penalty that grows with the logarithm of distance.
//
// Chi, Fan, Ramadge and Rudnicky 2022 (KERPLE, arXiv 2205.09921): s_ij = q_i.k_j / sqrt(d) - p_h
// ln(1 + a_h |i - j|), the paper's r1 = p and r2 = a. One p and one a per head, shared by all
// layers. The official code is causal; the paper's kernel and this method are symmetric.
//
// p and a are kept at 0.01 or more. The official code overwrites the parameter, so its gradient is
// computed at 0.01 and still changes it: "clamp": "straight-through". "smooth" is low + softplus
// instead. Past the training length the penalty keeps growing, ever more slowly. NeMo's "KERPLE"
// has the constants a = 0 and p = 1: no bias at all.
#include <ATen/TensorOperators.h>
#include <ATen/ops/log1p.h>

#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/kerple.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class KerpleLog final : public Method {
 public:
  KerpleLog(int64_t heads, Bounded how) : heads_(heads), how_(how) {}

  std::vector<ParameterSpec> parameters() const override {
    return kerple_parameters("bias", heads_, how_);
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t,
             Parameters parameters) const override {
    const at::Tensor p = bounded(parameters[0], {}, how_).view({heads_, 1});
    const at::Tensor a = bounded(parameters[1], {}, how_).view({heads_, 1});
    const at::Tensor rows = -p * at::log1p(a * sizes_of_distances(layout.diagonals(), operands.q));
    operands.bias.rows = rows.to(operands.q.options());
  }

 private:
  int64_t heads_;
  Bounded how_;
};

std::unique_ptr<Method> make_kerple_log(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("kerple-log", json);
  return std::make_unique<KerpleLog>(
      shape.heads, static_cast<Bounded>(options.choice("clamp", {"straight-through", "smooth"})));
}

}  // namespace

MethodInfo kerple_log_method() {
  return {.name = "kerple-log",
          .summary = "A trained logarithmic penalty on distance (KERPLE, Chi et al. 2022)",
          .formula = "s_ij = q_i . k_j / sqrt(d) - p_h ln(1 + a_h |i - j|)",
          .defaults = R"({"clamp": "straight-through"})",
          .make = make_kerple_log,
          // The official code's clamps pass gradients straight through; the smooth clamps have
          // derivatives.
          .tests = {.options = R"({"clamp": "smooth"})"}};
}

}  // namespace sextant
