// Intersections and remainders of key ranges, [..., 2] (first, last), one range for each query.
#pragma once

#include <ATen/core/Tensor.h>

namespace sextant {

// The keys that are in both ranges.
at::Tensor intersection(const at::Tensor& a, const at::Tensor& b);

// The keys of `key_ranges` before the first key of `others`, and the keys after its last.
at::Tensor before(const at::Tensor& key_ranges, const at::Tensor& others);
at::Tensor after(const at::Tensor& key_ranges, const at::Tensor& others);

}  // namespace sextant
