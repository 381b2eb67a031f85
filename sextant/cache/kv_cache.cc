// A sequence is a list of pages. Memory is taken before anything changes, so a call that throws
// leaves the cache as it was. Shared pages are copied when one of their sequences writes.
#include "sextant/cache/kv_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/base/packed.h"
#include "sextant/cache/cache_checks.h"
#include "sextant/cache/kv_cache_memory.h"
#include "sextant/cache/stored_rows.h"

namespace sextant {

using namespace cache_checks;
using namespace stored_rows;

namespace {

constexpr int64_t kMostColumns = int64_t{1} << 20;

void expect_equal(const std::string& field, int64_t got, int64_t expected) {
  if (got != expected) bad(field, std::to_string(expected), got);
}

void check_rotation(const std::optional<Rotation>& rotation, int64_t columns) {
  if (!rotation) return;
  std::vector<bool> used(static_cast<size_t>(columns), false);
  for (const Rotation::Pair& pair : rotation->pairs) {
    if (pair.growth != 0)
      fail("kv cache: rotated_keys: expected a rotation without growth, as e^(growth t) overflows");
    if (pair.axis != 0) bad("rotated_keys.axis", "0, as rows have one position", pair.axis);
    for (const int column : {pair.first, pair.second}) {
      expect_between("rotated_keys.pairs", column, 0, columns - 1);
      if (used[static_cast<size_t>(column)])
        bad("rotated_keys.pairs", "columns that no other pair turns", column);
      used[static_cast<size_t>(column)] = true;
    }
  }
}

// Whether rotated keys can be stored.
void check_rotated_keys(const std::optional<Rotation>& rotation, const KvCacheShape& shape,
                        const PageStore* store) {
  if (rotation && store)
    fail("kv cache: rotated_keys: expected none, as the cache has no memory of its own");
  if (rotation && shape.int8)
    fail(
        "kv cache: rotated_keys: expected none, as keys are rounded to int8 before their rotation");
  check_rotation(rotation, shape.key_columns);
}

const KvCacheShape& checked(const KvCacheShape& shape) {
  expect_between("key_heads", shape.key_heads, 1, kMostColumns);
  expect_between("key_columns", shape.key_columns, 1, kMostColumns);
  expect_between("value_columns", shape.value_columns, 0, kMostColumns);
  expect_between("page_rows", shape.page_rows, kPageUnit, int64_t{1} << 40);
  if (shape.page_rows % kPageUnit != 0)
    bad("page_rows", "a multiple of " + std::to_string(kPageUnit), shape.page_rows);
  if (shape.dtype == DType::kFloat64)
    fail("kv cache: dtype: expected float32, bfloat16 or float16, but got float64");
  return shape;
}

template <class T>
void check_rows(const std::string& name, const AnyView<T>& x, int64_t heads, int64_t rows,
                int64_t columns) {
  expect_equal(name + ".heads", x.heads, heads);
  expect_equal(name + ".rows", x.rows, rows);
  expect_equal(name + ".columns", x.columns, columns);
  if (heads * rows * columns > 0 && !x.data)
    fail("kv cache: " + name + ": expected data, but got a null pointer");
}

bool same_pairs(const Rotation& a, const Rotation& b) {
  return std::ranges::equal(a.pairs, b.pairs, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second == y.second;
  });
}

}  // namespace

KvCache::KvCache(const KvCacheShape& shape)
    : shape_(checked(shape)), memory_(std::make_unique<Memory>(shape)) {}
KvCache::KvCache(const KvCacheShape& shape, PageStore& store) : KvCache(shape) {
  if (shape.int8)
    fail("kv cache: dtype: expected float32, bfloat16 or float16 in a PageStore, but got int8");
  memory_->store = &store;
}
KvCache::KvCache(const KvCache& other)
    : shape_(other.shape_),
      memory_(other.memory_ ? std::make_unique<Memory>(*other.memory_)
                            : std::make_unique<Memory>(other.shape_)),
      sequences_(other.sequences_),
      next_sequence_(other.next_sequence_) {
  other.expect_own_memory("a copy");
}
KvCache::KvCache(KvCache&& other) noexcept = default;
KvCache& KvCache::operator=(KvCache other) noexcept {
  shape_ = other.shape_;
  memory_ = std::move(other.memory_);
  sequences_ = std::move(other.sequences_);
  next_sequence_ = other.next_sequence_;
  return *this;
}
KvCache::~KvCache() = default;

const KvCache::Sequence& KvCache::at(int64_t sequence) const {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end()) bad("sequence", "one that was added and not removed", sequence);
  return found->second;
}

int64_t KvCache::add(int64_t first_position, std::optional<Rotation> rotated_keys) {
  expect_between("first_position", first_position, -kFarthestPosition, kFarthestPosition);
  check_rotated_keys(rotated_keys, shape_, memory_->store);
  sequences_[next_sequence_] = {.first_position = first_position,
                                .rotated_keys = std::move(rotated_keys)};
  return next_sequence_++;
}

int64_t KvCache::fork(int64_t sequence, int64_t rows) {
  expect_between("rows", rows, 0, at(sequence).rows);
  Sequence copy = at(sequence);
  copy.reserved_rows = 0;
  copy.rows = rows;
  copy.pages.resize(static_cast<size_t>((rows + shape_.page_rows - 1) / shape_.page_rows));
  for (const int64_t page : copy.pages) share(page);
  sequences_[next_sequence_] = std::move(copy);
  const int64_t made = next_sequence_++;
  try {
    reserve(sequence, at(sequence).reserved_rows);  // its last page may be shared now
  } catch (...) {
    remove(made);
    throw;
  }
  return made;
}

void KvCache::remove(int64_t sequence) {
  truncate(sequence, 0);
  sequences_.erase(sequence);
}

void KvCache::set_rotated_keys(int64_t sequence, std::optional<Rotation> rotated_keys) {
  Sequence& t = at(sequence);
  if (t.rows != 0) bad("rotated_keys: rows", "0, as their keys are stored already", t.rows);
  check_rotated_keys(rotated_keys, shape_, memory_->store);
  t.rotated_keys = std::move(rotated_keys);
}

void KvCache::expect_own_memory(const char* call) const {
  if (memory_ && memory_->store)
    fail("kv cache: " + std::string(call) + ": expected a cache with memory of its own");
}

StoredRow KvCache::stored(const Sequence& sequence, int64_t row) const {
  return {sequence.pages[static_cast<size_t>(row / shape_.page_rows)], row % shape_.page_rows};
}

// Reads elements of the keys of a sequence, rows counted from `first`.
auto KvCache::reader(const Sequence& sequence, int64_t first) const {
  return [this, &sequence, first, held = HostAnyView(key_pages())](int64_t h, int64_t row,
                                                                   int64_t c) -> double {
    const auto [page, at] = stored(sequence, first + row);
    return held(page, h, at, c);
  };
}

template <class Read>
void KvCache::check_rotated(const char* name, const Rerotation& rotation, Read read) const {
  each_rotated(rotation, shape_.key_heads, read, [&](int64_t h, int64_t row, int64_t c, double x) {
    if (overflows(x, shape_.dtype)) refuse_overflow(name, shape_.dtype, x, h, row, c);
  });
}

template <class Read>
void KvCache::write_rotated(const Sequence& sequence, int64_t first, const Rerotation& rotation,
                            Read read) {
  const HostAnyView held(keys());
  each_rotated(rotation, shape_.key_heads, read, [&](int64_t h, int64_t row, int64_t c, double x) {
    const auto [page, at] = stored(sequence, first + row);
    held.set(page, h, at, c, x);
  });
}

void KvCache::append_stored(int64_t sequence, const AnyView<const float>& k,
                            const AnyView<const float>& v, int64_t b) {
  check_appended(k, v, b);
  Sequence& t = at(sequence);
  add_rows(t, k, v, b);
}

void KvCache::append(int64_t sequence, const AnyView<const float>& k, const AnyView<const float>& v,
                     int64_t b) {
  check_appended(k, v, b);
  Sequence& t = at(sequence);
  if (!t.rotated_keys) return add_rows(t, k, v, b);
  const int64_t first = t.rows;
  const HostAnyView unrotated(k);
  const auto read = [&](int64_t h, int64_t row, int64_t c) -> double {
    return unrotated(b, h, row, c);
  };
  const Rerotation rotation = {nullptr, 0, &*t.rotated_keys, t.first_position + first, k.rows};
  check_rotated("k, rotated", rotation, read);
  add_rows(t, k, v, b);
  write_rotated(t, first, rotation, read);
}

void KvCache::check_appended(const AnyView<const float>& k, const AnyView<const float>& v,
                             int64_t b) const {
  expect_own_memory("append");
  check_rows("k", k, shape_.key_heads, k.rows, shape_.key_columns);
  check_rows("v", v, shape_.key_heads, k.rows, shape_.value_columns);
  expect_between("b", b, 0, std::min(k.batch, v.batch) - 1);
  check_fits("k", k, b, shape_.dtype);
  check_fits("v", v, b, shape_.dtype);
  if (!shape_.int8) return;
  check_finite("k", k, b);
  check_finite("v", v, b);
}

// Takes the pages with which a sequence has `rows` rows, more than before, in all. They become its
// own one by one, in add_rows() or grow().
void KvCache::need_pages(Sequence& t, int64_t rows) {
  if (const auto pages = static_cast<size_t>((rows + shape_.page_rows - 1) / shape_.page_rows);
      pages > t.pages.capacity())
    t.pages.reserve(std::max(pages, 2 * t.pages.capacity()));
  need_free_pages(missing_pages(t, rows));
  if (t.rows % shape_.page_rows != 0) own_page(t, t.rows / shape_.page_rows);
}

void KvCache::grow(int64_t sequence, int64_t rows) {
  if (!memory_->store) fail("kv cache: grow: expected a cache with a PageStore");
  Sequence& t = at(sequence);
  expect_between("grow: rows", rows, 0, kFarthestPosition - t.rows);
  if (rows == 0) return;
  need_pages(t, t.rows + rows);
  t.rows += rows;
  while (std::ssize(t.pages) * shape_.page_rows < t.rows) t.pages.push_back(new_page());
}

void KvCache::take(int64_t sequence, int64_t other) {
  Sequence& t = at(sequence);
  std::swap(t.pages, at(other).pages);
  std::swap(t.rows, at(other).rows);
  remove(other);
}

// Appends rows that have been checked. All memory is taken first.
void KvCache::add_rows(Sequence& t, const AnyView<const float>& k, const AnyView<const float>& v,
                       int64_t b) {
  const int64_t first = t.rows, last = first + k.rows;
  if (first == last) return;
  need_pages(t, last);
  for (int64_t row = first; row < last; ++row) {
    const int64_t n = row / shape_.page_rows;
    if (n == std::ssize(t.pages)) t.pages.push_back(new_page());
    copy_row(k, {b, row - first}, keys(), stored(t, row));
    copy_row(v, {b, row - first}, values(), stored(t, row));
    if (shape_.int8 && (row + 1) % shape_.page_rows == 0) close_page(t, n);
  }
  t.rows = last;
}

void KvCache::append_int8(int64_t sequence, const Int8Pages<float>& k, const Int8Pages<float>& v) {
  expect_own_memory("append_int8");
  Sequence& t = at(sequence);
  if (!shape_.int8) fail("kv cache: append_int8: expected a cache of int8");
  if (t.rows % shape_.page_rows != 0)
    bad("append_int8: rows", "a multiple of " + std::to_string(shape_.page_rows), t.rows);
  if (t.pages.size() == t.pages.capacity()) t.pages.reserve(2 * t.pages.size() + 1);
  need_free_pages({.int8 = 1});
  const int64_t page = memory_->int8_pool.take();
  try {
    memory_->int8_keys.copy_page(k, page);
    memory_->int8_values.copy_page(v, page);
  } catch (...) {
    memory_->int8_pool.release(page);
    throw;
  }
  t.pages.push_back(-1 - page);
  t.rows += shape_.page_rows;
}

void KvCache::truncate(int64_t sequence, int64_t rows) {
  Sequence& t = at(sequence);
  expect_between("rows", rows, 0, t.rows);
  t.rows = rows;
  while ((static_cast<int64_t>(t.pages.size()) - 1) * shape_.page_rows >= rows) {
    release(t.pages.back());
    t.pages.pop_back();
  }
}

void KvCache::drop(int64_t sequence, int64_t first, int64_t count) {
  expect_own_memory("drop");
  Sequence& t = at(sequence);
  expect_between("first", first, 0, t.rows);
  expect_between("count", count, 0, t.rows - first);
  if (count == 0) return;
  if (shape_.int8) return drop_int8(sequence, first, count);
  const int64_t last = t.rows - count;
  const Rotation* const held = t.rotated_keys ? &*t.rotated_keys : nullptr;
  const Rerotation move = {held, t.first_position + first + count, held, t.first_position + first,
                           last - first};
  if (held) check_rotated("drop: k, rotated", move, reader(t, first + count));
  if (count > 0 && first < last)
    for (int64_t n = first / shape_.page_rows; n <= (last - 1) / shape_.page_rows; ++n)
      own_page(t, n);
  for (int64_t row = first; row < last; ++row) {
    copy_row(keys(), stored(t, row + count), keys(), stored(t, row));
    copy_row(values(), stored(t, row + count), values(), stored(t, row));
  }
  truncate(sequence, last);
  if (held) write_rotated(t, first, move, reader(t, first));
}

// Removes whole pages, or appends the later rows again. Until they are, the sequence's pages are
// also those of another.
void KvCache::drop_int8(int64_t sequence, int64_t first, int64_t count) {
  const int64_t rows = at(sequence).rows, some = shape_.page_rows;
  if (first % some == 0 && count % some == 0) {
    Sequence& t = at(sequence);
    const auto begin = t.pages.begin() + first / some, end = begin + count / some;
    std::for_each(begin, end, [&](int64_t page) { release(page); });
    t.pages.erase(begin, end);
    t.rows -= count;
    return;
  }
  std::vector<float> k(static_cast<size_t>(shape_.key_heads * some * shape_.key_columns));
  std::vector<float> v(static_cast<size_t>(shape_.key_heads * some * shape_.value_columns));
  need_free_pages({.numbers = 2, .int8 = (rows - count) / some - first / some + 1});
  const int64_t all = fork(sequence, rows);
  truncate(sequence, first);
  for (int64_t row = first + count, last; row < rows; row = last) {
    last = std::min(row + some, rows);
    const View<float> keys = packed(k.data(), 1, shape_.key_heads, last - row, shape_.key_columns);
    const View<float> values =
        packed(v.data(), 1, shape_.key_heads, last - row, shape_.value_columns);
    read(all, row, keys, values);
    add_rows(at(sequence), keys, values, 0);
  }
  remove(all);
}

void KvCache::rerotate(int64_t sequence, int64_t first_position) {
  Sequence& t = at(sequence);
  expect_between("first_position", first_position, -kFarthestPosition, kFarthestPosition);
  if (t.rotated_keys)
    rotate_rows(t, {&*t.rotated_keys, t.first_position, &*t.rotated_keys, first_position, t.rows});
  t.first_position = first_position;
}

void KvCache::rerotate(int64_t sequence, const Rotation& rotation) {
  Sequence& t = at(sequence);
  if (!t.rotated_keys)
    fail(
        "kv cache: rerotate: expected a sequence with rotated keys, as plain keys need "
        "none");
  check_rotation(rotation, shape_.key_columns);
  if (!same_pairs(rotation, *t.rotated_keys))
    fail("kv cache: rerotate: expected the pairs of columns that the keys are rotated by");
  rotate_rows(t, {&*t.rotated_keys, t.first_position, &rotation, t.first_position, t.rows});
  t.rotated_keys = rotation;
}

// Rotates all rows in place. Nothing is written if the cache's type does not hold a result.
void KvCache::rotate_rows(Sequence& sequence, const Rerotation& rotation) {
  if (rotation.count == 0) return;
  check_rotated("rerotate: k, rotated", rotation, reader(sequence, 0));
  for (int64_t n = 0; n <= (rotation.count - 1) / shape_.page_rows; ++n) own_page(sequence, n);
  write_rotated(sequence, 0, rotation, reader(sequence, 0));
}

void KvCache::read(int64_t sequence, int64_t first, const AnyView<float>& k,
                   const AnyView<float>& v) const {
  expect_own_memory("read");
  const Sequence& t = at(sequence);
  expect_between("first", first, 0, t.rows);
  expect_between("k.rows", k.rows, 0, t.rows - first);
  check_rows("k", k, shape_.key_heads, k.rows, shape_.key_columns);
  check_rows("v", v, shape_.key_heads, k.rows, shape_.value_columns);
  for (int64_t n = 0; n < k.rows; ++n) {
    const StoredRow from = stored(t, first + n);
    if (from.is_int8()) {
      memory_->int8_keys.copy_row(from.int8_page(), from.row, k, {0, n});
      memory_->int8_values.copy_row(from.int8_page(), from.row, v, {0, n});
    } else {
      copy_row(key_pages(), from, k, {0, n});
      copy_row(value_pages(), from, v, {0, n});
    }
  }
}

}  // namespace sextant
