// Attention of any method over a cache of unrotated keys and values (sextant/cache/kv_cache.h).
//
//   const Layout layout = continued(cache, sequences);   // the positions of the new rows
//   cache.append(...);                                   // for each sequence
//   attend_cached(method, q, cache, sequences, layout, layer, parameters);
//
// The rows of all sequences are concatenated in one batch entry, so each sequence has its own
// length and position, and a dynamic stretch has a factor for each. Keys are read from their pages;
// a method that changes keys gets a copy of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "sextant/cache/kv_cache.h"
#include "sextant/torch/method.h"

namespace sextant {

// A sequence, and the number of rows that it grows by.
struct SequenceGrowth {
  int64_t sequence = 0, rows = 0;
};

// The layout of the new rows and all keys of the sequences. Throws Error if a sequence is not in
// the cache, or is listed twice.
Layout continued(const KvCache& cache, std::span<const SequenceGrowth> sequences);

// Removes the rows of `layout` again from the sequences to which they have been appended so far.
void shrink(KvCache& cache, std::span<const SequenceGrowth> sequences, const Layout& layout);

// q [1, heads, rows of all sequences, key_columns] -> [1, heads, rows, value_columns]. The cache
// holds the new rows already; `layout` is the result of continued() before they were appended.
// Differentiable in q and the parameters; keys and values are constants. The terms may not have a
// key_bias. Throws Error as applied() does, and if the method rotates keys and those of a sequence
// are stored rotated.
at::Tensor attend_cached(const Method& method, const at::Tensor& q, const KvCache& cache,
                         std::span<const SequenceGrowth> sequences, const Layout& layout,
                         int64_t layer, Parameters parameters, const CallTerms& terms = {});

}  // namespace sextant
