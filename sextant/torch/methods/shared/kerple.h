// KERPLE's parameters, shared by its two kernels (kerple_log.cc, kerple_power.cc).
//
// Chi, Fan, Ramadge and Rudnicky 2022 (arXiv 2205.09921), code chijames/KERPLE: p and a of shape
// [heads, 1, 1], one pair for all layers, p from U(0, 2) and a from U(0, 1).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant {

// The ways to keep a parameter in its range.
enum class Bounded {
  kStraightThrough,  // official code: the value is clamped, the gradient is not
  kSmooth,  // low + softplus(x), or low + (high - low) sigmoid(x): never stuck at a bound, fits no
            // checkpoint
};

struct Range {
  double low = 0.01;
  double high = 0;  // above low; 0: no upper bound
};

// The parameter's value in its range, float64.
at::Tensor bounded(const at::Tensor& parameter, const Range& range, Bounded how);

// The parameters "NAME_p" and "NAME_a".
std::vector<ParameterSpec> kerple_parameters(const std::string& name, int64_t heads, Bounded how);

}  // namespace sextant
