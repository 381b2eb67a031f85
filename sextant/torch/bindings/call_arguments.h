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

// Masks as torch's scaled_dot_product_attention has them, split into operands of the score
// equation.
struct MaskParts {
  at::Tensor shown = {};     // bool [1 or batch, 1 or heads, 1 or queries, 1 or keys], or undefined
  at::Tensor key_bias = {};  // [1 or batch, 1 or heads, keys], or undefined
};

// The sizes that a mask covers.
struct MaskSizes {
  int64_t batch = 0, heads = 0, queries = 0, keys = 0;
};

// mask: [keys], [queries, keys], [batch, keys] or [batch, heads, queries, keys], where sizes of 1
// are shared. A bool mask hides where it is false. A floating mask is added to scores: -infinity,
// or the lowest number of its type, hides, and its other values may depend on the key, not on the
// query. Throws Error for other shapes and types, a 2-dimensional mask of batch = queries rows
// (which may mean either), a mask that needs a gradient, and a bias by query and key.
MaskParts mask_parts(const at::Tensor& mask, const MaskSizes& sizes);

}  // namespace sextant
