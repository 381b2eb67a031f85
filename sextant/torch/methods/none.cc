// none: no position encoding at all (NoPE).
//
// Kazemnejad et al. 2023 (arXiv 2305.19466), Haviv et al. 2022 (arXiv 2203.16634): a causal decoder
// can count the visible keys, so it learns some order from the mask alone. Without the causal mask
// a transformer cannot distinguish orders of its input.
#include "sextant/torch/method.h"

namespace sextant {
namespace {

std::unique_ptr<Method> make_none(const ModelShape&, const nlohmann::json&) {
  return std::make_unique<Method>();
}

}  // namespace

MethodInfo none_method() {
  return {.name = "none",
          .summary = "No position encoding: order by the causal mask alone (NoPE, 2022)",
          .formula = "s_ij = q_i . k_j / sqrt(d)",
          .defaults = "{}",
          .make = make_none};
}

}  // namespace sextant
