// Small tensor helpers for methods.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "sextant/position/frame.h"

namespace sextant {

// float64 of shape `sizes`, which must hold as many elements as `values`, on the CPU.
at::Tensor tensor_of(std::span<const double> values, at::IntArrayRef sizes);
// The same on the device of `like`, as on_device_of() makes it.
at::Tensor tensor_of(std::span<const double> values, at::IntArrayRef sizes, const at::Tensor& like);
at::Tensor tensor_of(std::span<const int32_t> values);  // int32 on the CPU, as row maps are

// |distance| of each diagonal, float64 [1, diagonals] on the device of `like`.
at::Tensor sizes_of_distances(const Diagonals& diagonals, const at::Tensor& like);

// The tensor of a layer, for parameters with one tensor per layer. Throws Error if there is no such
// layer.
const at::Tensor& of_layer(std::span<const at::Tensor> tensors, int64_t layer);

}  // namespace sextant
