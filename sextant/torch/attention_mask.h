// Masks as torch's scaled_dot_product_attention has them, split into operands of the score
// equation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sextant {

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
