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

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/piecewise_rotary.h"
#include "sextant/torch/methods/shared/rotary_plan.h"

namespace sextant {
namespace {

class SelfExtend final : public Method {
 public:
  SelfExtend(const Spectrum& spectrum, int64_t window, int64_t group, Real offset, int64_t log_n)
      : rotation_(rotation(spectrum)),
        offset_(phases(spectrum, offset)),
        window_(window),
        group_(group),
        log_n_(log_n) {}

  bool relative() const override { return false; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t, Parameters) const override {
    scale_by_log_n(operands, layout, log_n_);
    turn_within_and_beyond(
        operands, layout, rotation_, window_,
        {.rotation = rotation_,
         .query_rotary_positions = at::floor_divide(query_rotary_positions(layout, 1), group_),
         .key_rotary_positions = at::floor_divide(key_rotary_positions(layout, 1), group_),
         .offset = offset_});
  }

 private:
  Rotation rotation_;
  std::vector<Turns> offset_;
  int64_t window_, group_, log_n_;
};

std::unique_ptr<Method> make_self_extend(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("self-extend", json);
  const int64_t window = window_length(options, (shape.train_length + 3) / 4);
  const int64_t group = options.integer("group", 1, int64_t{1} << 31);
  const bool paper = options.choice("flavour", {"code", "paper"}) == 1;
  const int64_t whole_groups = window / group;
  const Real groups = paper ? Real(static_cast<double>(whole_groups))
                            : Real(static_cast<double>(window)) / Real(static_cast<double>(group));
  return std::make_unique<SelfExtend>(one_axis_spectrum(options, shape), window, group,
                                      Real(static_cast<double>(window)) - groups,
                                      log_n_length(options));
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
