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

// Intersections and remainders of key ranges, [..., 2] (first, last), one range for each query.

// The keys that are in both ranges.
at::Tensor intersection(const at::Tensor& a, const at::Tensor& b);

// The keys of `key_ranges` before the first key of `others`, and the keys after its last.
at::Tensor before(const at::Tensor& key_ranges, const at::Tensor& others);
at::Tensor after(const at::Tensor& key_ranges, const at::Tensor& others);

}  // namespace sextant
