// Arrays of golden files as tensors, and comparisons of methods' results and gradients with them.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "tests/golden/golden.h"

namespace sextant::golden {

using Tensors = std::map<std::string, at::Tensor>;

at::Tensor tensor_of(const Golden& file, const std::string& array);    // float64
at::Tensor integers_of(const Golden& file, const std::string& array);  // int64

// The file's arrays of these names as tensors that require gradients.
Tensors inputs(const Golden& file, const std::vector<std::string>& names);

void expect_equal(const Golden& file, const std::string& array, const at::Tensor& got);

// Compares `out` with the file's, and the gradient of each input with the array `prefix` + name.
void expect_answers(const Golden& file, const at::Tensor& out, const std::string& gradient_of,
                    const Tensors& inputs, const std::string& prefix);

}  // namespace sextant::golden
