// Arguments of calls of attention in the forms that Python has for them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sextant/torch/call_terms.h"
#include "sextant/torch/layout.h"

namespace sextant {

// All throw Error that names the argument.
//
// Cumulative lengths, from the tensor if it is defined (cu_seqlens of other libraries), otherwise
// from the list.
std::vector<int64_t> cumulative(const char* argument, const std::vector<int64_t>& list,
                                const at::Tensor& tensor);

// int64 [frames, 7], the fields of Frame in their order.
std::vector<Frame> frames_of(const at::Tensor& table);

// [left, right]; empty: no window.
std::optional<DistanceWindow> window_of(const std::vector<int64_t>& sides);

// Splits the mask of a call into a layout's mask and a term's bias by key.
void read_mask(const at::Tensor& mask, const at::Tensor& q, Layout& layout, CallTerms& terms);

}  // namespace sextant
