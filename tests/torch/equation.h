// The score equation (sextant/attention/score.h) in tensor operations, with matrices of queries x
// keys: slow, differentiable by autograd, and written independently of the kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <tuple>
#include <vector>

#include "sextant/torch/operands.h"

namespace sextant::testing {

std::tuple<at::Tensor, at::Tensor> equation(const TensorOperands& operands);

// float64 operands that use every term: two packed frames of different lengths, two sweeps with
// rotations of their own, grouped heads, tables with and without row maps, a query that sees no
// key.
TensorOperands every_term();

// The differentiable tensors that `operands` contains, and their names.
std::vector<at::Tensor*> differentiable(TensorOperands& operands);
std::vector<std::string> names(const TensorOperands& operands);

}  // namespace sextant::testing
