#include "sextant/torch/methods/shared/kerple.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>

namespace sextant {

at::Tensor bounded(const at::Tensor& parameter, const Range& range, Bounded how) {
  const at::Tensor x = parameter.to(at::kDouble);
  const bool open = range.high <= range.low;
  if (how == Bounded::kSmooth)
    return open ? range.low + at::softplus(x)
                : range.low + (range.high - range.low) * at::sigmoid(x);
  const at::Tensor value = open ? at::clamp_min(x, range.low) : at::clamp(x, range.low, range.high);
  return value.detach() + (x - x.detach());  // x - x is an exact 0 with the gradient of x
}

std::vector<ParameterSpec> kerple_parameters(const std::string& name, int64_t heads, Bounded how) {
  // For kSmooth, the initial values of p around 1 and of a around 0.5 spread as widely as those of
  // the official code.
  const bool smooth = how == Bounded::kSmooth;
  using Init = ParameterSpec::Init;
  return {{.name = name + "_p",
           .sizes = {heads, 1, 1},
           .init = Init::kUniform,
           .init_low = smooth ? -2.0 : 0.0,
           .init_high = 2},
          {.name = name + "_a",
           .sizes = {heads, 1, 1},
           .init = Init::kUniform,
           .init_low = smooth ? -3.0 : 0.0,
           .init_high = smooth ? 0.5 : 1.0}};
}

}  // namespace sextant
