// Operands of attend() for its tests, and the values and gradients that the tests compare.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sextant/torch/operands.h"
#include "tests/torch/gradients.h"

namespace sextant::testing {

struct Case {
  const char* name;
  TensorOperands operands;
};

// Every term at once, and each alone, so that a term that only works in company is seen.
std::vector<Case> cases();

void without_tables(TensorOperands& o);
TensorOperands requiring_gradients(const TensorOperands& operands);

at::Tensor out_of(const TensorOperands& operands);
Tensors gradients_of(const at::Tensor& out, TensorOperands& operands);

// Queries that see nothing have -infinity on both sides.
double lse_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace sextant::testing
