// Initial values of parameters.
//
// They are drawn in float64, so that they are the same whatever type a model later computes in, and
// from the seed and the parameter's name, so that models which differ in one parameter share the
// initial values of all others.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant {

// All results are float64.
at::Tensor constant_values(const std::vector<int64_t>& sizes, double value);
at::Tensor normal_values(const std::vector<int64_t>& sizes, double mean, double deviation,
                         uint64_t seed, const std::string& name);
at::Tensor initial_value(const ParameterSpec& spec, uint64_t seed, const std::string& name);

}  // namespace sextant
