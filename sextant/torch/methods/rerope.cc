// rerope: rotary positions in which no distance exceeds a window.
//
// Su 2023 (Rectified Rotary Position Embeddings, kexue.fm/archives/9708; github.com/bojone/rerope):
// as rope for |i - j| < window; every pair farther apart is rotated as if its distance were
// `window`, so a trained rope meets no angle beyond training, however long the sequence. For keys
// in the future the distance is -window; the official code is made for the causal mask and has
// +window there.
//
// Beyond the window all keys have rotary position 0 and all queries the same angle: a far tile
// costs what rope costs, and only tiles on the border compute two scores. A cache holds keys that
// are not rotated.
//
// The window defaults to half of the training length. `log_n` (see piecewise_rotary.h) is on in the
// official code.
#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/methods/shared/piecewise_rotary.h"

namespace sextant {
namespace {

std::unique_ptr<Method> make_rerope(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("rerope", json);
  const Spectrum spectrum = one_axis_spectrum(options, shape);
  const int64_t window = window_length(options, (shape.train_length + 1) / 2);
  PiecewiseRotary::Far far = {.rotation = rotation(spectrum),
                              .positions = [](const at::Tensor& at) { return at.mul(0); },
                              .offset = phases(spectrum, static_cast<double>(window))};
  return std::make_unique<PiecewiseRotary>(spectrum, std::move(far), window, log_n_length(options));
}

}  // namespace

MethodInfo rerope_method() {
  return {.name = "rerope",
          .summary = "Rotary, no distance beyond a window (Su 2023)",
          .formula =
              "relative position of query i and key j: i - j if |i - j| < window; "
              "window if i - j >= window",
          .defaults = one_axis_defaults() + R"(, "window": null, "log_n": null})",
          .make = make_rerope,
          .tests = {.rounding = 1e-14}};
}

}  // namespace sextant
