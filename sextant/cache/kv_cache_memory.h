// The pages of a KV cache.
#pragma once

#include <cstddef>
#include <vector>

#include "sextant/base/aligned_memory.h"
#include "sextant/cache/int8_store.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/cache/page_pool.h"

namespace sextant {

struct KvCache::Memory {
  explicit Memory(const KvCacheShape& s)
      : int8_keys(Int8Store::Scales::kByColumn, s.key_heads, s.page_rows, s.key_columns),
        int8_values(Int8Store::Scales::kByRow, s.key_heads, s.page_rows, s.value_columns) {}

  std::vector<std::byte, LinesAllocator<std::byte>> keys, values;
  PagePool pool;
  Int8Store int8_keys, int8_values;
  PagePool int8_pool;
  PageStore* store = nullptr;  // has the numbers, if it is not null
};

}  // namespace sextant
