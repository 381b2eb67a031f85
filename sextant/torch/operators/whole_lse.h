// The logarithm of a query's sum, with the terms of all its scores: the largest bias of its keys,
// which kernels subtract (sextant/attention/key_bias.h), and the query_shift.
#pragma once

#include <ATen/core/Tensor.h>

#include "sextant/torch/operands.h"

namespace sextant {

// lse, a result of attend(), plus the largest key_bias that each query sees and the query_shift.
// The bias is added as a constant: its gradients flow through lse (autograd.cc).
at::Tensor whole_lse(const TensorOperands& operands, const at::Tensor& lse);

}  // namespace sextant
