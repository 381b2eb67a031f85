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

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/piecewise_rotary.h"
#include "sextant/torch/methods/shared/rotary_plan.h"

namespace sextant {
namespace {

class Rerope final : public Method {
 public:
  Rerope(const Spectrum& spectrum, int64_t window, int64_t log_n)
      : rotation_(rotation(spectrum)),
        offset_(phases(spectrum, static_cast<double>(window))),
        window_(window),
        log_n_(log_n) {}

  bool relative() const override { return log_n_ == 0; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t, Parameters) const override {
    scale_by_log_n(operands, layout, log_n_);
    turn_within_and_beyond(operands, layout, rotation_, window_,
                           {.rotation = rotation_,
                            .query_rotary_positions = query_rotary_positions(layout, 1).mul(0),
                            .key_rotary_positions = key_rotary_positions(layout, 1).mul(0),
                            .offset = offset_});
  }

 private:
  Rotation rotation_;
  std::vector<Turns> offset_;
  int64_t window_, log_n_;
};

std::unique_ptr<Method> make_rerope(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("rerope", json);
  return std::make_unique<Rerope>(one_axis_spectrum(options, shape),
                                  window_length(options, (shape.train_length + 1) / 2),
                                  log_n_length(options));
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
