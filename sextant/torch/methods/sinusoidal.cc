// sinusoidal: sines and cosines of each position are added to the input.
//
// Vaswani et al. 2017 (arXiv 1706.03762), section 3.5: p[t, 2i] = sin(t w_i), p[t, 2i + 1] = cos(t w_i),
// w_i = base^(-2i / width). Computed for any position, but a model has seen those of its training only.
// The layouts of other codes are in sextant/position/sinusoid.h; a checkpoint needs its own.
//
// token_scale multiplies the input first: the paper's sqrt(width), where the model has not done so.
#include <ATen/TensorOperators.h>

#include <nlohmann/json_fwd.hpp>

#include "sextant/position/sinusoid.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/options.h"
#include "sextant/torch/methods/tensors.h"

namespace sextant {
namespace {

class Sinusoidal final : public Method {
 public:
  Sinusoidal(const SinusoidOptions& options, double token_scale)
      : sinusoid_(options), token_scale_(token_scale) {}

  bool relative() const override { return false; }
  at::Tensor embed(const at::Tensor& x, const Placement& placement, Parameters) const override {
    const at::Tensor positions = query_positions(placement);
    const auto count = static_cast<size_t>(positions.numel());
    const auto rows = sinusoid_.rows(std::span(positions.data_ptr<int64_t>(), count));
    const at::Tensor table = tensor_of(rows, {positions.numel(), sinusoid_.width()});
    return x * token_scale_ + table.to(x.options());
  }

 private:
  Sinusoid sinusoid_;
  double token_scale_;
};

std::unique_ptr<Method> make(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("sinusoidal", json);
  constexpr SinusoidLayout kLayouts[] = {
      SinusoidLayout::kInterleaved, SinusoidLayout::kConcatenated, SinusoidLayout::kTensor2Tensor};
  const SinusoidOptions sinusoid = {
      .width = shape.width,
      .layout =
          kLayouts[options.choice("layout", {"interleaved", "concatenated", "tensor2tensor"})],
      .max_timescale = options.number("base", 1e-3, 1e30),
  };
  return std::make_unique<Sinusoidal>(sinusoid, options.number("token_scale", -1e9, 1e9));
}

}  // namespace

MethodInfo sinusoidal_method() {
  return {.name = "sinusoidal",
          .summary = "Sines and cosines added to the input (Vaswani et al. 2017)",
          .defaults = R"({"layout": "interleaved", "base": 10000.0, "token_scale": 1.0})",
          .make = make};
}

}  // namespace sextant
