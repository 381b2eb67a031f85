// leaky-rerope: rotary positions that grow more slowly beyond a window.
//
// Su 2023 (kexue.fm/archives/9708; github.com/bojone/rerope): the relative position of a pair at
// distance d is d for |d| < window, and window + (d - window) / factor beyond, mirrored towards the
// future. rerope is the limit of large factors. Training has no position beyond L: choose window
// and factor so that window + (length - window) / factor < L.
//
// Inverse Leaky ReRoPE (Su 2023, kexue.fm/archives/9728) trains with a factor below 1, so that
// positions beyond the window grow faster, and infers with plain rope: `factor` 1/8 here, then the
// method rope.
//
// Positions beyond the window use frequencies / factor and a constant phase, both exact at any
// position. `window` defaults to half of the training length; `log_n` (see piecewise_rotary.h) is
// on in the official code.
#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/methods/shared/piecewise_rotary.h"

namespace sextant {
namespace {

std::unique_ptr<Method> make_leaky_rerope(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("leaky-rerope", json);
  const Spectrum spectrum = one_axis_spectrum(options, shape);
  const int64_t window = window_length(options, (shape.train_length + 1) / 2);
  const double factor = options.number("factor", 1e-6, 1e12);
  const Real offset = Real(static_cast<double>(window)) * (Real(1) - Real(1) / factor);
  PiecewiseRotary::Far far = {.rotation = rotation(slowed(spectrum, factor)),
                              .positions = [](const at::Tensor& at) { return at; },
                              .offset = phases(spectrum, offset)};
  return std::make_unique<PiecewiseRotary>(spectrum, std::move(far), window, log_n_length(options));
}

}  // namespace

MethodInfo leaky_rerope_method() {
  return {.name = "leaky-rerope",
          .summary = "Rotary, slower beyond a window (Su 2023)",
          .formula =
              "relative position at distance d: d if |d| < window; "
              "window + (d - window) / factor if d >= window",
          .defaults = one_axis_defaults() + R"(, "window": null, "factor": 16.0, "log_n": null})",
          .make = make_leaky_rerope,
          .tests = {.rounding = 1e-14}};
}

}  // namespace sextant
