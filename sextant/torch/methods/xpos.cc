// xpos: rotary positions whose pairs also decay with distance, each at its own rate.
//
// Sun et al. 2022 (A Length-Extrapolatable Transformer, arXiv 2212.10554): as rope, and pair f of a
// query at t is multiplied by zeta_f^(t / scale_base), of a key by zeta_f^(-t / scale_base), zeta_f
// = (f/n + gamma) / (1 + gamma) for n pairs, so that a score has zeta_f^((i - j) / scale_base). The
// code (torchscale) pairs interleaved channels, FlashAttention's code half-split ones. No
// parameters.
//
// Reviews print one number xi instead: q_m -> R_m q_m xi^m, k_n -> R_n k_n xi^(-n), so that a score
// has xi^(m - n). Option `xi` is that number, for all pairs; gamma and scale_base then keep their
// defaults, which have no effect.
//
// Each of the two factors alone exceeds the range of float32 from 72000 tokens on. Kernels never
// compute them: they take the factor of a distance relative to the edge of a tile, so any length
// works, and so does decoding with a cache of plain keys (official code scales by the wrong origin
// when it decodes several tokens at once).
//
// For keys in the future a score grows without bound as zeta^(-|d| / scale_base): bidirectional
// use, which the code allows, is for short sequences.
//
// Stretches (rotary_plan.h) change the angles; the decay by distance stays as it was trained.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <utility>

#include "sextant/position/spectrum.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/rotary_options.h"
#include "sextant/torch/methods/shared/rotary_plan.h"

namespace sextant {
namespace {

constexpr double kLeastXi = 1e-6;

std::unique_ptr<Method> make_xpos(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("xpos", json);
  const double gamma = options.number("gamma", 1e-6, 1e6);
  const double scale_base = options.number("scale_base", 1e-3, 1e12);
  if (const std::optional<double> xi = options.optional_number("xi", kLeastXi, 1)) {
    if (gamma != kXposGamma) options.refuse("gamma", "0.4, the default, as xi gives the decay");
    if (scale_base != kXposScaleBase)
      options.refuse("scale_base", "512, the default, as xi gives the decay");
    return std::make_unique<RotaryMethod>(RotaryPlan(options, shape, [=](Spectrum spectrum) {
      return with_uniform_growth(std::move(spectrum), *xi);
    }));
  }
  return std::make_unique<RotaryMethod>(RotaryPlan(options, shape, [=](Spectrum spectrum) {
    return with_xpos(std::move(spectrum), gamma, scale_base);
  }));
}

}  // namespace

MethodInfo xpos_method() {
  return {.name = "xpos",
          .summary = "Rotary positions that fade with distance (Sun et al. 2022)",
          .formula =
              "s_ij = sum_f Re( q_f conj(k_f) zeta_f^((i - j) / B) e^(i (i - j) theta_f) ) / "
              "sqrt(d); zeta_f = (f / n + gamma) / (1 + gamma)",
          .defaults = rotary_defaults("interleaved")
                          .append(", ")
                          .append(rotary_plan_defaults())
                          .append(R"(, "gamma": 0.4, "scale_base": 512.0, "xi": null})"),
          .make = make_xpos,
          .tests = {.rounding = 1e-14}};
}

}  // namespace sextant
