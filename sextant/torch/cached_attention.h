// Methods over a cache of keys and values (sextant/cache/kv_cache.h), which holds them plain.
//
//   const Layout placement = continued(cache, texts);   // where the new rows will stand
//   cache.append(...);                                     // for each text
//   attend_cached(method, q, cache, texts, placement, layer, parameters);
//
// The rows of all texts lie one after the other in one batch entry, so that each text has its own
// length and position, and a dynamic stretch its own factor. Keys are read from their pages; a
// method that dresses keys is given a copy of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "sextant/cache/kv_cache.h"
#include "sextant/torch/method.h"

namespace sextant {

// A text, and how many rows it grows by.
struct SequenceGrowth {
  int64_t sequence = 0, rows = 0;
};

// Throws Error if a text is not in the cache, or is named twice.
Layout continued(const KvCache& cache, std::span<const SequenceGrowth> sequences);

// Takes back the growth that `placement` was for, as far as it has come.
void shrink(KvCache& cache, std::span<const SequenceGrowth> sequences, const Layout& layout);

// q [1, heads, rows of all texts, key_columns] -> [1, heads, rows, value_columns]. The cache holds
// the new rows; `placement` is what continued() said before. Differentiable in q and the
// parameters: keys and values are constants. Throws Error as placed() does, and if a text's keys
// are held turned while the method turns keys, too.
at::Tensor attend_cached(const Method& method, const at::Tensor& q, const KvCache& cache,
                         std::span<const SequenceGrowth> sequences, const Layout& layout,
                         int64_t layer, Parameters parameters);

}  // namespace sextant
