#include "tests/torch/gradients.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

namespace sextant::testing {

double gradient_error(const std::function<at::Tensor(const Tensors&)>& f, const Tensors& inputs,
                      int64_t most) {
  Tensors leaves;
  for (const at::Tensor& x : inputs) leaves.push_back(x.detach().clone().set_requires_grad(true));
  const at::Tensor out = f(leaves);
  const at::Tensor weights = at::randn_like(out.detach());
  const Tensors grads = torch::autograd::grad({(out * weights).sum()}, leaves);

  const c10::AutoGradMode no_grad(false);
  const auto value = [&] { return (f(leaves) * weights).sum().item<double>(); };
  double worst = 0;
  for (size_t n = 0; n < leaves.size(); ++n) {
    double* x = leaves[n].data_ptr<double>();
    const at::Tensor grad = grads[n].contiguous();
    const int64_t stride = std::max<int64_t>(1, leaves[n].numel() / most);
    for (int64_t e = 0; e < leaves[n].numel(); e += stride) {
      const double at = x[e];
      const auto difference = [&](double step) {
        x[e] = at + step;
        const double above = value();
        x[e] = at - step;
        const double below = value();
        x[e] = at;
        return (above - below) / (2 * step);
      };
      constexpr double kStep = 5e-4;
      const double numeric = (4 * difference(kStep) - difference(2 * kStep)) / 3;
      const double error = std::abs(grad.data_ptr<double>()[e] - numeric);
      worst = std::max(worst, error / std::max(1.0, std::abs(numeric)));
      if (std::isnan(error)) return error;
    }
  }
  return worst;
}

}  // namespace sextant::testing
