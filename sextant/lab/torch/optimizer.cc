#include "sextant/lab/torch/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <vector>

#include "sextant/torch/operators/executor.h"

namespace sextant::lab {
namespace {

// The formula of adamw.h.
void advance_by_operators(const dense::AdamW& adamw, const at::Tensor& weight,
                          const Moments& moments, const at::Tensor& gradient) {
  const at::NoGradGuard no_gradients;
  const auto step = static_cast<double>(adamw.step);
  const at::Tensor g = gradient * adamw.gradient_scale;
  moments.first.mul_(adamw.beta1).add_(g, 1 - adamw.beta1);
  moments.second.mul_(adamw.beta2).addcmul_(g, g, 1 - adamw.beta2);
  const at::Tensor below =
      moments.second.sqrt().div_(std::sqrt(1 - std::pow(adamw.beta2, step))).add_(adamw.epsilon);
  weight.detach()
      .mul_(1 - adamw.rate * adamw.decay)
      .addcdiv_(moments.first, below, -adamw.rate / (1 - std::pow(adamw.beta1, step)));
}

}  // namespace

void advance(const dense::AdamW& adamw, const at::Tensor& weight, const Moments& moments,
             const at::Tensor& gradient) {
  if (!weight.is_cpu()) return advance_by_operators(adamw, weight, moments, gradient);
  dense::advance(adamw,
                 {.weight = weight.data_ptr<float>(),
                  .moment1 = moments.first.data_ptr<float>(),
                  .moment2 = moments.second.data_ptr<float>(),
                  .gradient = gradient.data_ptr<float>(),
                  .count = gradient.numel()},
                 torch_executor());
}

double norm_of(std::span<const at::Tensor> gradients) {
  double squares = 0;
  std::vector<at::Tensor> norms;  // on other devices, copied to the host at once
  for (const at::Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    if (gradient.is_cpu()) {
      squares +=
          dense::sum_of_squares(gradient.data_ptr<float>(), gradient.numel(), torch_executor());
    } else {
      norms.push_back(at::linalg_vector_norm(gradient.view({-1}), 2, at::OptionalIntArrayRef(),
                                             /*keepdim=*/false, at::kDouble));
    }
  }
  if (!norms.empty()) squares += at::stack(norms).square().sum().item<double>();
  return std::sqrt(squares);
}

}  // namespace sextant::lab
