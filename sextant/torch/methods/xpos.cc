// xpos: rotary positions whose pairs also fade with distance, each at its own rate.
//
// Sun et al. 2022 (A Length-Extrapolatable Transformer, arXiv 2212.10554): as rope, and pair f of a query
// at t is multiplied by zeta_f^(t / scale_base), of a key by zeta_f^(-t / scale_base), zeta_f =
// (f/n + gamma) / (1 + gamma) for n pairs, so that a score has zeta_f^((i - j) / scale_base). The code
// (torchscale) pairs interleaved channels, FlashAttention's has half-split ones. No parameters.
//
// The two factors alone leave float32 from 72000 tokens on. Kernels never form them: they take what belongs
// to the distance from the edge of a tile, so any length works, as does decoding with a cache of plain
// keys (official code scales by the wrong origin when it decodes several tokens at once).
//
// Towards the future a score grows without bound as zeta^(-|d| / scale_base): bidirectional use, which
// the code allows, is for short texts.
#include <nlohmann/json_fwd.hpp>

#include "sextant/position/spectrum.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/options.h"
#include "sextant/torch/methods/rotary_options.h"

namespace sextant {
namespace {

class Xpos final : public Method {
 public:
  explicit Xpos(const Spectrum& spectrum)
      : rotation_(rotation(spectrum)), axes_(axes_of(spectrum)) {}

  bool reads_times() const override { return true; }

  void place(Operands& operands, const Placement& placement, int64_t, Parameters) const override {
    for (SweepOperand& sweep : operands.sweeps) {
      sweep.rotation = rotation_;
      sweep.query_times = query_times(placement, axes_);
      sweep.key_times = key_times(placement, axes_);
    }
  }

 private:
  Rotation rotation_;
  int64_t axes_;
};

std::unique_ptr<Method> make(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("xpos", json);
  return std::make_unique<Xpos>(with_xpos(rotary_spectrum(options, shape.head_dim),
                                          options.number("gamma", 1e-6, 1e6),
                                          options.number("scale_base", 1e-3, 1e12)));
}

}  // namespace

MethodInfo xpos_method() {
  return {
      .name = "xpos",
      .summary = "Rotary positions that fade with distance (Sun et al. 2022)",
      .defaults = "{" + rotary_defaults("interleaved") + R"(, "gamma": 0.4, "scale_base": 512.0})",
      .make = make};
}

}  // namespace sextant
