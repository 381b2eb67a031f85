// The pages of a KV cache: their memory, sharing, and rounding to integers.
#include <algorithm>
#include <cstddef>
#include <new>

#include "sextant/base/packed.h"
#include "sextant/cache/cache_checks.h"
#include "sextant/cache/kv_cache_memory.h"

namespace sextant {

using namespace cache_checks;

const PageStore* KvCache::store() const { return memory_->store; }

int64_t KvCache::pages_in_use() const {
  return memory_->pool.in_use() + memory_->int8_pool.in_use();
}

KvCache::PageCounts KvCache::missing_pages(const Sequence& t, int64_t rows) const {
  if (rows == 0) return {};
  const int64_t own = std::ssize(t.pages), last = own == 0 ? 0 : t.pages.back();
  const bool has_open = own > 0 && last >= 0, has_own = has_open && !memory_->pool.is_shared(last);
  if (!shape_.int8) {
    const int64_t pages = (rows + shape_.page_rows - 1) / shape_.page_rows;
    return {.numbers = std::max<int64_t>(pages - own + (has_open && !has_own ? 1 : 0), 0)};
  }
  // One page is open at a time. A page of integers that is not full is opened and becomes another:
  // the same, unless it is shared.
  const bool cut = !has_open && t.rows % shape_.page_rows != 0;
  const int64_t closed = own - (has_open || cut ? 1 : 0);
  const int64_t freed = cut && !memory_->int8_pool.is_shared(-1 - last) ? 1 : 0;
  return {.numbers = has_own ? 0 : 1,
          .int8 = std::max<int64_t>(rows / shape_.page_rows - closed - freed, 0)};
}

void KvCache::reserve(int64_t sequence, int64_t rows) {
  Sequence& t = at(sequence);
  expect_between("rows", rows, 0, kFarthestPosition);
  PageCounts needed = missing_pages(t, rows);
  // A sequence that is cut within a shared page of integers needs another page for it.
  const auto spare = [&](int64_t reserved) { return shape_.int8 && reserved > 0 ? 1 : 0; };
  needed.int8 += spare(rows);
  for (const auto& [id, one] : sequences_) {
    if (id == sequence) continue;
    const PageCounts others = missing_pages(one, one.reserved_rows);
    needed = {needed.numbers + others.numbers,
              needed.int8 + others.int8 + spare(one.reserved_rows)};
  }
  need_free_pages(needed);
  t.pages.reserve(static_cast<size_t>((rows + shape_.page_rows - 1) / shape_.page_rows) + 1);
  t.reserved_rows = rows;
}

void KvCache::need_free_pages(const PageCounts& counts) {
  add_pages(counts.numbers - memory_->pool.free());
  if (const int64_t count = counts.int8 - memory_->int8_pool.free(); count > 0) {
    memory_->int8_keys.resize(memory_->int8_pool.size() + count);
    memory_->int8_values.resize(memory_->int8_pool.size() + count);
    memory_->int8_pool.add(count);
  }
}

void KvCache::add_pages(int64_t count) {
  if (count <= 0) return;
  const auto bytes = [&](int64_t columns) {
    size_t all = 0;
    if (__builtin_mul_overflow(
            memory_->pool.size() + count,
            shape_.key_heads * shape_.page_rows * columns * key_pages().element_size(), &all))
      throw std::bad_array_new_length();
    return all;
  };
  if (memory_->store) {
    memory_->store->resize(memory_->pool.size() + count);
  } else {
    memory_->keys.resize(bytes(shape_.key_columns));
    memory_->values.resize(bytes(shape_.value_columns));
  }
  memory_->pool.add(count);
}

int64_t KvCache::new_page() {
  if (memory_->pool.free() == 0) add_pages(1);
  return memory_->pool.take();
}

void KvCache::share(int64_t page) {
  if (page < 0)
    memory_->int8_pool.share(-1 - page);
  else
    memory_->pool.share(page);
}

void KvCache::release(int64_t page) {
  if (page < 0)
    memory_->int8_pool.release(-1 - page);
  else
    memory_->pool.release(page);
}

void KvCache::own_page(Sequence& sequence, int64_t n) {
  int64_t& page = sequence.pages[static_cast<size_t>(n)];
  if (page >= 0 && !memory_->pool.is_shared(page)) return;
  const int64_t copy = new_page();
  try {
    if (memory_->store) memory_->store->copy_page(page, copy);
  } catch (...) {
    release(copy);
    throw;
  }
  const auto copy_page = [&](const AnyView<float>& x) {
    const int64_t bytes = x.batch_stride * x.element_size();
    std::copy_n(static_cast<const std::byte*>(x.at(page, 0, 0)), bytes,
                static_cast<std::byte*>(x.at(copy, 0, 0)));
  };
  if (page >= 0 && !memory_->store) {
    copy_page(keys());
    copy_page(values());
  }
  for (int64_t row = 0; page < 0 && row < shape_.page_rows; ++row) {
    memory_->int8_keys.copy_row(-1 - page, row, keys(), {copy, row});
    memory_->int8_values.copy_row(-1 - page, row, values(), {copy, row});
  }
  release(page);
  page = copy;
}

void KvCache::close_page(Sequence& sequence, int64_t n) {
  int64_t& page = sequence.pages[static_cast<size_t>(n)];
  const int64_t closed = memory_->int8_pool.take();
  memory_->int8_keys.quantize(key_pages(), page, closed);
  memory_->int8_values.quantize(value_pages(), page, closed);
  release(page);
  page = -1 - closed;
}

AnyView<float> KvCache::pages_of(std::byte* data, int64_t columns) const {
  const auto view = [&]<class Number>(Number* numbers) -> AnyView<float> {
    return packed(numbers, memory_->pool.size(), shape_.key_heads, shape_.page_rows, columns);
  };
  if (shape_.dtype == DType::kBfloat16) return view(reinterpret_cast<Bfloat16*>(data));
  if (shape_.dtype == DType::kFloat16) return view(reinterpret_cast<Float16*>(data));
  return view(reinterpret_cast<float*>(data));
}

AnyView<float> KvCache::keys() { return pages_of(memory_->keys.data(), shape_.key_columns); }
AnyView<float> KvCache::values() { return pages_of(memory_->values.data(), shape_.value_columns); }
AnyView<const float> KvCache::key_pages() const { return const_cast<KvCache*>(this)->keys(); }
AnyView<const float> KvCache::value_pages() const { return const_cast<KvCache*>(this)->values(); }
Int8Pages<float> KvCache::int8_key_pages() const {
  return memory_->int8_keys.pages(memory_->int8_pool.size());
}
Int8Pages<float> KvCache::int8_value_pages() const {
  return memory_->int8_values.pages(memory_->int8_pool.size());
}

}  // namespace sextant
