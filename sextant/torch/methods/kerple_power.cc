// kerple-power: a trained penalty that grows with a power of distance.
//
// Chi, Fan, Ramadge and Rudnicky 2022 (KERPLE, arXiv 2205.09921): s_ij = q_i.k_j / sqrt(d) - a_h |i
// - j|^p_h, the paper's r1 = a and r2 = p. p = 1 is ALiBi with trained slopes. One p and one a per
// head, shared by all layers.
//
// form (pos-emb in the code): "bias" (kerple_power_ap_) is the paper's; "weight" (kerple_power__ap)
// multiplies the product by exp(-a |i - j|^p) instead; "bias-and-weight" (kerple_power_ap_ap) does
// both.
//
// a is kept at 0.01 or more, p in [0.01, 2] (a kernel needs p <= 2). The official code overwrites
// the parameter, so its gradient is computed at the bound and still changes it: "clamp":
// "straight-through". "smooth" uses softplus and sigmoid. Past the training length the penalty
// keeps growing.
#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/pow.h>

#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/kerple.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

struct Form {
  bool bias = true, weight = false;
};

class KerplePower final : public Method {
 public:
  KerplePower(int64_t heads, Form form, Bounded how) : heads_(heads), form_(form), how_(how) {}

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    if (form_.bias) specs = kerple_parameters("bias", heads_, how_);
    if (form_.weight)
      for (ParameterSpec& spec : kerple_parameters("wei", heads_, how_)) specs.push_back(spec);
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t,
             Parameters parameters) const override {
    const at::Tensor sizes = sizes_of_distances(layout.diagonals(), operands.q);
    const auto penalty = [&](Parameters pair) {
      const at::Tensor p = bounded(pair[0], {.high = 2}, how_).view({heads_, 1});
      const at::Tensor a = bounded(pair[1], {}, how_).view({heads_, 1});
      return -a * at::pow(sizes, p);
    };
    const auto like = operands.q.options();
    if (form_.bias) operands.bias.rows = penalty(parameters.first(2)).to(like);
    if (form_.weight) operands.weight.rows = at::exp(penalty(parameters.last(2))).to(like);
  }

 private:
  int64_t heads_;
  Form form_;
  Bounded how_;
};

std::unique_ptr<Method> make_kerple_power(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("kerple-power", json);
  const size_t form = options.choice("form", {"bias", "weight", "bias-and-weight"});
  return std::make_unique<KerplePower>(
      shape.heads, Form{.bias = form != 1, .weight = form != 0},
      static_cast<Bounded>(options.choice("clamp", {"straight-through", "smooth"})));
}

}  // namespace

MethodInfo kerple_power_method() {
  return {.name = "kerple-power",
          .summary = "A trained power of distance as penalty (KERPLE, Chi et al. 2022)",
          .formula = "s_ij = q_i . k_j / sqrt(d) - a_h |i - j|^p_h",
          .defaults = R"({"form": "bias", "clamp": "straight-through"})",
          .make = make_kerple_power,
          // As for kerple-log.
          .tests = {.options = R"({"clamp": "smooth"})"}};
}

}  // namespace sextant
