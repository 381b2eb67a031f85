// The updates of parameters by AdamW and the norm of their gradients: on the CPU by sextant/dense,
// which passes over memory once, on other devices by functions of libtorch.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "sextant/dense/adamw.h"

namespace sextant::lab {

// Tensors like the parameter.
struct Moments {
  at::Tensor first, second;
};

// gradient: contiguous, like the parameter `weight`.
void advance(const dense::AdamW& adamw, const at::Tensor& weight, const Moments& moments,
             const at::Tensor& gradient);

// The norm of all gradients as one vector; undefined ones are left out.
double norm_of(std::span<const at::Tensor> gradients);

}  // namespace sextant::lab
