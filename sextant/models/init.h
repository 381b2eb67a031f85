// What parameters start from.
//
// Drawn in float64, so that a start is the same whatever type a model later computes in, and by
// seed and name, so that models which differ in one parameter share the start of all others.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant {

// All float64.
at::Tensor constant_values(const std::vector<int64_t>& sizes, double value);
at::Tensor normal_values(const std::vector<int64_t>& sizes, double mean, double deviation,
                         uint64_t seed, const std::string& name);
at::Tensor initial_value(const ParameterSpec& spec, uint64_t seed, const std::string& name);

}  // namespace sextant
