// Complex numbers r e^{i (w pos + theta)} by token id that rotate with position (Wang et al. 2020).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sextant {

// Throws Error if a token id is negative or not below `vocabulary`.
void check_words(const at::Tensor& token_ids, int64_t vocabulary);

// Rows of a table by token id: [vocabulary, columns], ids int64 [batch, length] -> [batch, length,
// columns]. A table of one dimension is shared by all token ids and is returned as it is.
at::Tensor of_words(const at::Tensor& table, const at::Tensor& token_ids);

// The angles w pos + theta of every column, or one angle for all. Frequencies w and phases theta
// are tables as above; theta may be undefined. rotary_positions has the type of w and the shape
// [batch, length, 1] or [length, 1].
at::Tensor angles_of_token_ids(const at::Tensor& token_ids, const at::Tensor& rotary_positions,
                               const at::Tensor& w, const at::Tensor& theta);

}  // namespace sextant
