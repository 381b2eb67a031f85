// Runs of keys, [..., 2] (first, last), one for each query: what is left of them when others are
// taken.
#pragma once

#include <ATen/core/Tensor.h>

namespace sextant {

// The keys that are in both.
at::Tensor intersection(const at::Tensor& a, const at::Tensor& b);

// The part of `key_ranges` before the first key of `others`, and that after their last.
at::Tensor before(const at::Tensor& key_ranges, const at::Tensor& others);
at::Tensor after(const at::Tensor& key_ranges, const at::Tensor& others);

}  // namespace sextant
