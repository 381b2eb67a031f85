// The pages of a KV cache: their memory, sharing, and rounding to integers.
#include <algorithm>
#include <cstddef>
#include <new>

#include "sextant/base/packed.h"
#include "sextant/cache/cache_checks.h"
#include "sextant/cache/kv_cache.h"

namespace sextant {

using namespace cache_checks;

KvCache::PageCounts KvCache::missing_pages(const Sequence& t, int64_t rows) const {
  if (rows == 0) return {};
  const int64_t own = std::ssize(t.pages), last = own == 0 ? 0 : t.pages.back();
  const bool has_open = own > 0 && last >= 0, has_own = has_open && !pool_.is_shared(last);
  if (!shape_.int8) {
    const int64_t pages = (rows + shape_.page_rows - 1) / shape_.page_rows;
    return {.numbers = std::max<int64_t>(pages - own + (has_open && !has_own ? 1 : 0), 0)};
  }
  // One page is open at a time. A page of integers that is not full is opened, and becomes another.
  const int64_t closed = own - (has_open || t.rows % shape_.page_rows != 0 ? 1 : 0);
  return {.numbers = has_own ? 0 : 1,
          .int8 = std::max<int64_t>(rows / shape_.page_rows - closed, 0)};
}

void KvCache::reserve(int64_t sequence, int64_t rows) {
  Sequence& t = at(sequence);
  expect_between("rows", rows, 0, kFarthestPosition);
  PageCounts needed = missing_pages(t, rows);
  for (const auto& [id, one] : sequences_) {
    if (id == sequence) continue;
    const PageCounts others = missing_pages(one, one.reserved_rows);
    needed = {needed.numbers + others.numbers, needed.int8 + others.int8};
  }
  need_free_pages(needed);
  t.pages.reserve(static_cast<size_t>((rows + shape_.page_rows - 1) / shape_.page_rows) + 1);
  t.reserved_rows = rows;
}

void KvCache::need_free_pages(const PageCounts& counts) {
  add_pages(counts.numbers - pool_.free());
  if (const int64_t count = counts.int8 - int8_pool_.free(); count > 0) {
    int8_keys_.resize(int8_pool_.size() + count);
    int8_values_.resize(int8_pool_.size() + count);
    int8_pool_.add(count);
  }
}

void KvCache::add_pages(int64_t count) {
  if (count <= 0) return;
  const auto bytes = [&](int64_t columns) {
    size_t all = 0;
    if (__builtin_mul_overflow(
            pool_.size() + count,
            shape_.key_heads * shape_.page_rows * columns * key_pages().element_size(), &all))
      throw std::bad_array_new_length();
    return all;
  };
  keys_.resize(bytes(shape_.key_columns));
  values_.resize(bytes(shape_.value_columns));
  pool_.add(count);
}

int64_t KvCache::new_page() {
  if (pool_.free() == 0) add_pages(1);
  return pool_.take();
}

void KvCache::share(int64_t page) {
  if (page < 0)
    int8_pool_.share(-1 - page);
  else
    pool_.share(page);
}

void KvCache::release(int64_t page) {
  if (page < 0)
    int8_pool_.release(-1 - page);
  else
    pool_.release(page);
}

void KvCache::own_page(Sequence& sequence, int64_t n) {
  int64_t& page = sequence.pages[static_cast<size_t>(n)];
  if (page >= 0 && !pool_.is_shared(page)) return;
  const int64_t copy = new_page();
  const auto copy_page = [&](const AnyView<float>& x) {
    const int64_t bytes = x.batch_stride * x.element_size();
    std::copy_n(static_cast<const std::byte*>(x.at(page, 0, 0)), bytes,
                static_cast<std::byte*>(x.at(copy, 0, 0)));
  };
  if (page >= 0) {
    copy_page(keys());
    copy_page(values());
  }
  for (int64_t row = 0; page < 0 && row < shape_.page_rows; ++row) {
    int8_keys_.copy_row(-1 - page, row, keys(), {copy, row});
    int8_values_.copy_row(-1 - page, row, values(), {copy, row});
  }
  release(page);
  page = copy;
}

void KvCache::close_page(Sequence& sequence, int64_t n) {
  int64_t& page = sequence.pages[static_cast<size_t>(n)];
  const int64_t closed = int8_pool_.take();
  int8_keys_.quantize(key_pages(), page, closed);
  int8_values_.quantize(value_pages(), page, closed);
  release(page);
  page = -1 - closed;
}

AnyView<float> KvCache::pages_of(std::byte* data, int64_t columns) const {
  const auto view = [&]<class Number>(Number* numbers) -> AnyView<float> {
    return packed(numbers, pool_.size(), shape_.key_heads, shape_.page_rows, columns);
  };
  if (shape_.dtype == DType::kBfloat16) return view(reinterpret_cast<Bfloat16*>(data));
  if (shape_.dtype == DType::kFloat16) return view(reinterpret_cast<Float16*>(data));
  return view(reinterpret_cast<float*>(data));
}

}  // namespace sextant
