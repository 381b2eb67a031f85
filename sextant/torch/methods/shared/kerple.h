// KERPLE's parameters, as its two kernels (kerple_log.cc, kerple_power.cc) share them.
//
// Chi, Fan, Ramadge and Rudnicky 2022 (arXiv 2205.09921), code chijames/KERPLE: p and a of shape
// [heads, 1, 1], one pair for all layers, p from U(0, 2) and a from U(0, 1).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant {

// How a parameter is kept in its range.
enum class Bounded {
  kStraightThrough,  // the code: the value is clamped, the gradient passes as if it were not
  kSmooth,  // low + softplus(x), or low + (high - low) sigmoid(x): never stuck, no checkpoint
};

struct Range {
  double low = 0.01;
  double high = 0;  // above low, or 0: none
};

// float64, in its range.
at::Tensor bounded(const at::Tensor& parameter, const Range& range, Bounded how);

// "NAME_p" and "NAME_a".
std::vector<ParameterSpec> kerple_parameters(const std::string& name, int64_t heads, Bounded how);

}  // namespace sextant
