// Compares autograd's gradients with finite differences, in float64.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace sextant::testing {

using Tensors = std::vector<at::Tensor>;

// The largest difference, relative to max(1, gradient), between autograd's gradient of a fixed
// random projection of f(inputs) and central differences with Richardson extrapolation (steps h and
// 2h, error O(h^4)), over all elements of all inputs. Inputs are contiguous float64. With `most`,
// only that many evenly spaced elements of each input are checked.
double gradient_error(const std::function<at::Tensor(const Tensors&)>& f, const Tensors& inputs,
                      int64_t most = INT64_MAX);

}  // namespace sextant::testing
