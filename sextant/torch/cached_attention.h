// Attention of any method over a cache of keys and values (sextant/cache/kv_cache.h).
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
#include <vector>

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

// The rotation of each sequence of `layout` by which `method` rotates keys, so that the
// cache can have rotated keys. q is that of attend_cached(). Throws Error if the method rotates no
// keys, changes them otherwise, or does not rotate every key once, at its position.
std::vector<Rotation> rotations_for(const Method& method, const at::Tensor& q, const KvCache& cache,
                                    const Layout& layout, int64_t layer, Parameters parameters);

// q [1, heads, rows of all sequences, key_columns] -> [1, heads, rows, value_columns]. The cache
// holds the new rows already; `layout` is the result of continued() before they were appended.
// Differentiable in q and the parameters; keys and values are constants. The terms may not have a
// key_bias or dropout, which are an Error. Where there are rotated keys, queries alone are
// rotated. Throws Error as applied() does, if a method that rotates would need other
// rotated keys, and if must_rotate and it does not rotate.
at::Tensor attend_cached(const Method& method, const at::Tensor& q, const KvCache& cache,
                         std::span<const SequenceGrowth> sequences, const Layout& layout,
                         int64_t layer, Parameters parameters, const CallTerms& terms = {},
                         bool must_rotate = false);

// The memory of a cache, its own or that of TensorPages (device_cache.h), as operands: pages of
// keys and of values, [pages, heads, page rows, columns], the pages of each sequence in turn, int64
// [1, pages], and TensorOperands::int8_pages. It is valid until the cache changes.
struct CachePages {
  at::Tensor keys, values, table;
  std::vector<at::Tensor> int8;
};
CachePages pages_of(const KvCache& cache, std::span<const SequenceGrowth> sequences);

}  // namespace sextant
