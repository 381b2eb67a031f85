// rope: queries and keys are rotated by an angle that grows with their position.
//
// Su et al. 2021 (arXiv 2104.09864): pair f of a query or key at position t is rotated by t
// theta_f, theta_f = base^(-2f/R), so that a score depends only on the distance between query and
// key. R = dim channels are rotated, the first ones unless `columns` is "last"; the rest pass
// through (partial rotary: GPT-J, GPT-NeoX, Phi, GLM).
//
// Pairs are (2f, 2f + 1), "interleaved": the paper, GPT-J, Meta's Llama weights; or (f, f + R/2),
// "half-split": GPT-NeoX and everything in Hugging Face's layout, the default. The frequencies are
// the same, so weights convert by a permutation of the rows of W_q and W_k; without the permutation
// a model is ruined.
//
// Rotary positions need not be consecutive (Layout::query_rotary_positions), and a row may have
// several (M-RoPE): see rotary_options.h for these and the other options. rotary_plan.h has
// stretches, which may depend on the sequence length, and query factors. `train` makes the
// frequencies parameters (GRAPE's log_freq, gradient included); the angles are then computed in
// float64, as exactly as the parameters allow.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sin.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "sextant/position/spectrum.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/rotary_options.h"
#include "sextant/torch/methods/shared/rotary_plan.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

class TrainedRope final : public Method {
 public:
  explicit TrainedRope(Spectrum spectrum) : spectrum_(std::move(spectrum)) {}

  bool reads_rotary_positions() const override { return true; }
  bool changes_keys() const override { return true; }

  std::vector<ParameterSpec> parameters() const override {
    std::vector<double> logs;
    for (const Spectrum::Pair& pair : spectrum_.pairs)
      logs.push_back(std::log(std::fabs(static_cast<double>(pair.frequency))));
    const auto pairs = static_cast<int64_t>(logs.size());
    return {{.name = "log_freq", .sizes = {pairs}, .initial = tensor_of(logs, {pairs})}};
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t,
             Parameters parameters) const override {
    const int64_t axes = axes_of(spectrum_);
    operands.q = at_positions(operands.q, query_rotary_positions(layout, axes), parameters[0]);
    operands.k = at_positions(operands.k, key_rotary_positions(layout, axes), parameters[0]);
  }

 private:
  at::Tensor at_positions(const at::Tensor& x, const at::Tensor& rotary_positions,
                          const at::Tensor& log_freq) const {
    const bool clockwise = !spectrum_.pairs.empty() && spectrum_.pairs.front().frequency.high < 0;
    const at::Tensor frequencies = at::exp(log_freq.to(at::kDouble)) * (clockwise ? -1.0 : 1.0);
    const at::Tensor at = on_device_of(x, rotary_positions);
    const at::Tensor angles = positions_of_pairs(at, spectrum_) * frequencies;
    return rotated(x, at::cos(angles).to(x.options()), at::sin(angles).to(x.options()), spectrum_);
  }

  Spectrum spectrum_;
};

std::unique_ptr<Method> make_rope(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("rope", json);
  RotaryPlan plan(options, shape, {});
  if (!options.flag("train")) return std::make_unique<RotaryMethod>(std::move(plan));
  if (plan.is_stretched() || !options.value("query_scale").is_null())
    options.refuse("train", "false, as there is a stretch or a query_scale");
  return std::make_unique<TrainedRope>(rotary_spectrum(options, shape.head_dim));
}

}  // namespace

MethodInfo rope_method() {
  return {.name = "rope",
          .summary = "Rotary position embedding (Su et al. 2021)",
          .formula =
              "pair f of a query or key at position t is rotated by t theta_f; "
              "theta_f = base^(-2f/R)",
          .defaults = rotary_defaults("half-split")
                          .append(", ")
                          .append(rotary_plan_defaults())
                          .append(R"(, "train": false})"),
          .make = make_rope,
          // Angles are of positions, not of distances.
          .tests = {.rounding = 1e-14}};
}

}  // namespace sextant
