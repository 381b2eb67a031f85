// window: each query sees the nearest keys only; laid over another method.
//
// Local attention: Beltagy et al. 2020 (Longformer, arXiv 2004.05150); Mistral, Gemma and gpt-oss slide one
// over rope, which is the default. A query sees the `window` keys at distances 0 .. window - 1, itself
// among them (Hugging Face and llama.cpp count so; FlashAttention's left = window - 1). Without the
// causal mask also the window - 1 keys to its right; ModernBERT's local_attention 128 means distances up
// to 64 to both sides, so window = 65.
//
// With the training length as window, the default, a model never meets a distance it has not seen: no
// relative method breaks then, and nothing beyond the window is read.
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>

#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/options.h"

namespace sextant {
namespace {

// Runs [..., 2] of keys that are in both.
at::Tensor intersection(const at::Tensor& a, const at::Tensor& b) {
  return at::stack({at::maximum(a.select(-1, 0), b.select(-1, 0)),
                    at::minimum(a.select(-1, 1), b.select(-1, 1))},
                   -1);
}

class Window final : public Method {
 public:
  Window(std::unique_ptr<Method> of, int64_t window) : of_(std::move(of)), window_(window) {}

  std::vector<ParameterSpec> parameters() const override { return of_->parameters(); }

  at::Tensor embed(const at::Tensor& x, const Placement& placement,
                   Parameters parameters) const override {
    return of_->embed(x, placement, parameters);
  }

  void place(Operands& operands, const Placement& placement, int64_t layer,
             Parameters parameters) const override {
    of_->place(operands, placement, layer, parameters);
    const at::Tensor near = window_runs(placement, window_);
    for (SweepOperand& sweep : operands.sweeps) sweep.runs = intersection(sweep.runs, near);
  }

 private:
  std::unique_ptr<Method> of_;
  int64_t window_;
};

std::unique_ptr<Method> make(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("window", json);
  return std::make_unique<Window>(
      make_method(options.text("of"), shape, options.object("options")),
      options.integer_or("window", shape.train_length, 1, int64_t{1} << 52));
}

}  // namespace

MethodInfo window_method() {
  return {.name = "window",
          .summary = "The nearest keys only, over another method (Longformer 2020, Mistral)",
          .defaults = R"({"window": null, "of": "rope", "options": {}})",
          .make = make};
}

}  // namespace sextant
