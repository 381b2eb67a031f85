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

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/piecewise_rotary.h"
#include "sextant/torch/methods/shared/rotary_plan.h"

namespace sextant {
namespace {

class LeakyRerope final : public Method {
 public:
  LeakyRerope(const Spectrum& spectrum, int64_t window, double factor, int64_t log_n)
      : within_(rotation(spectrum)),
        beyond_(rotation(slowed(spectrum, factor))),
        offset_(phases(spectrum, Real(static_cast<double>(window)) * (Real(1) - Real(1) / factor))),
        window_(window),
        log_n_(log_n) {}

  bool relative() const override { return log_n_ == 0; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t, Parameters) const override {
    scale_by_log_n(operands, layout, log_n_);
    turn_within_and_beyond(operands, layout, within_, window_,
                           {.rotation = beyond_,
                            .query_rotary_positions = query_rotary_positions(layout, 1),
                            .key_rotary_positions = key_rotary_positions(layout, 1),
                            .offset = offset_});
  }

 private:
  Rotation within_, beyond_;
  std::vector<Turns> offset_;
  int64_t window_, log_n_;
};

std::unique_ptr<Method> make_leaky_rerope(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("leaky-rerope", json);
  return std::make_unique<LeakyRerope>(one_axis_spectrum(options, shape),
                                       window_length(options, (shape.train_length + 1) / 2),
                                       options.number("factor", 1e-6, 1e12), log_n_length(options));
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
