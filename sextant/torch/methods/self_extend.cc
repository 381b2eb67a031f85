// self-extend: rotary positions counted in groups beyond a window.
//
// Jin et al. 2024 (LLM Maybe LongLM, arXiv 2401.01325; github.com/datamllab/LongLM): the relative
// position of query i and key j is i - j for |i - j| < window, and beyond
//
//   floor(i / group) - floor(j / group) + (window - window / group)
//
// mirrored towards the future. No position exceeds L while a sequence has at most (L - window)
// group + window tokens. If `window` is not a multiple of `group`, the code's positions are
// fractions (flavour "code"), and the paper rounds window / group down ("paper").
//
// `window` defaults to a quarter of the training length. The code's `scale_base` is `log_n` (see
// piecewise_rotary.h).
#include <ATen/ops/floor_divide.h>

#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/methods/shared/piecewise_rotary.h"

namespace sextant {
namespace {

std::unique_ptr<Method> make_self_extend(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("self-extend", json);
  const int64_t window = window_length(options, (shape.train_length + 3) / 4);
  const int64_t group = options.integer("group", 1, int64_t{1} << 31);
  const bool paper = options.choice("flavour", {"code", "paper"}) == 1;
  const int64_t whole_groups = window / group;
  const Real groups = paper ? Real(static_cast<double>(whole_groups))
                            : Real(static_cast<double>(window)) / Real(static_cast<double>(group));
  const Spectrum spectrum = one_axis_spectrum(options, shape);
  PiecewiseRotary::Far far = {
      .rotation = rotation(spectrum),
      .positions = [group](const at::Tensor& at) { return at::floor_divide(at, group); },
      .offset = phases(spectrum, Real(static_cast<double>(window)) - groups)};
  return std::make_unique<PiecewiseRotary>(spectrum, std::move(far), window, log_n_length(options),
                                           /*relative=*/false);
}

}  // namespace

MethodInfo self_extend_method() {
  return {.name = "self-extend",
          .summary = "Rotary, positions in groups beyond a window (Jin et al. 2024)",
          .formula =
              "relative position of query i and key j: i - j if |i - j| < window; "
              "floor(i / group) - floor(j / group) + (window - window/group) if i - j >= window",
          .defaults = one_axis_defaults() +
                      R"(, "window": null, "group": 8, "flavour": "code", "log_n": null})",
          .make = make_self_extend};
}

}  // namespace sextant
