// Words as complex numbers that turn with position (Wang et al. 2020): r e^{i (w pos + theta)}.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sextant {

// Throws Error if a word is not below `vocabulary` or negative.
void check_words(const at::Tensor& token_ids, int64_t vocabulary);

// Rows of a table by word: [words, columns], words int64 [batch, length] -> [batch, length,
// columns]. A table of one dimension is the same for every word, and is returned.
at::Tensor of_words(const at::Tensor& table, const at::Tensor& token_ids);

// w pos + theta: frequencies w and phases theta are tables as above, theta may be undefined; times,
// of the type of w, [batch, length, 1] or [length, 1]. Angles of every column, or one for all.
at::Tensor angles_of_token_ids(const at::Tensor& token_ids, const at::Tensor& rotary_positions,
                               const at::Tensor& w, const at::Tensor& theta);

}  // namespace sextant
