// The pages of a KV cache as tensors on a device (sextant/cache/page_store.h): its rows are copied
// by operators of libtorch, on the device's current stream.
//
//   TensorPages pages(shape, device);
//   KvCache cache(shape, pages);
//   append(cache, pages, k, v, sequences);
//   const auto [k, v] = read(cache, pages, sequence, 0, cache.rows(sequence));
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>

#include "sextant/cache/kv_cache.h"

namespace sextant {

class TensorPages final : public PageStore {
 public:
  TensorPages(const KvCacheShape& shape, c10::Device device);
  void resize(int64_t pages) override;
  void copy_page(int64_t from, int64_t to) override;

  // [pages, key heads, page rows, columns]; pages beyond those of the cache are free.
  const at::Tensor& keys() const { return keys_; }
  const at::Tensor& values() const { return values_; }

 private:
  at::Tensor keys_, values_;
};

// Appends k and v, [sequences, key heads, rows, columns] on the device of the pages. Throws Error
// if a finite number is infinite in the type of the pages, which waits for the device where this
// type has a smaller range than k's. If it throws, the cache is unchanged.
void append(KvCache& cache, TensorPages& pages, const at::Tensor& k, const at::Tensor& v,
            std::span<const int64_t> sequences);

// Copies of rows [first, first + count) of the keys and values, [1, key heads, count, columns].
std::pair<at::Tensor, at::Tensor> read(const KvCache& cache, const TensorPages& pages,
                                       int64_t sequence, int64_t first, int64_t count);

// Removes rows [first, first + count), as KvCache::drop() does. If it throws, the cache is
// unchanged.
void drop(KvCache& cache, TensorPages& pages, int64_t sequence, int64_t first, int64_t count);

// The same cache of one sequence in the host's memory, whose id is 0, and back: adds the sequence
// of a cache in the host's memory, and returns its id.
KvCache host_copy(const KvCache& cache, const TensorPages& pages, int64_t sequence);
int64_t add_copy(KvCache& cache, TensorPages& pages, const KvCache& host, int64_t sequence);

}  // namespace sextant
