// Rows rotated by their positions outside attention, by the kernels of the core.
#pragma once

#include <ATen/core/Tensor.h>

#include "sextant/position/spectrum.h"

namespace sextant {

// x [batch, heads, rows, columns] in the type of x, which is computed in float32. rotary_positions:
// int64 [1 or batch, axes, rows]. No gradient is recorded.
at::Tensor rotated_rows(const at::Tensor& x, const at::Tensor& rotary_positions,
                        const Rotation& rotation);

// The same, differentiable in x: the gradient is rotated in the opposite direction.
at::Tensor differentiably_rotated_rows(const at::Tensor& x, const at::Tensor& rotary_positions,
                                       const Rotation& rotation);

}  // namespace sextant
