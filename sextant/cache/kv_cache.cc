#include "sextant/cache/kv_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sextant/attention/rotary/cos_sin.h"
#include "sextant/base/error.h"
#include "sextant/base/packed.h"
#include "sextant/cache/cache_checks.h"

namespace sextant {

using namespace cache_checks;

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
      fail("kv cache: rotated_by: expected a rotation without growth, as e^(growth t) overflows");
    if (pair.axis != 0) bad("rotated_by.axis", "0, as rows have one position", pair.axis);
    for (const int column : {pair.first, pair.second}) {
      expect_between("rotated_by.pairs", column, 0, columns - 1);
      if (used[static_cast<size_t>(column)])
        bad("rotated_by.pairs", "columns that no other pair turns", column);
      used[static_cast<size_t>(column)] = true;
    }
  }
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

// Copies one row of all heads, converting between formats.
void copy_row(const AnyView<const float>& from, StoredRow source, const AnyView<float>& to,
              StoredRow target) {
  HostAnyView(from).visit([&](const auto& x) {
    HostAnyView(to).visit([&](const auto& y) {
      using Number = std::remove_pointer_t<decltype(y.data)>;
      for (int64_t h = 0; h < x.heads; ++h)
        for (int64_t c = 0; c < x.columns; ++c)
          y(target.batch, h, target.row, c) =
              narrowed<Number>(to_float(x(source.batch, h, source.row, c)));
    });
  });
}

bool same_pairs(const Rotation& a, const Rotation& b) {
  return std::ranges::equal(a.pairs, b.pairs, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second == y.second;
  });
}

}  // namespace

KvCache::KvCache(const KvCacheShape& shape) : shape_(shape) {
  expect_between("key_heads", shape.key_heads, 1, kMostColumns);
  expect_between("key_columns", shape.key_columns, 1, kMostColumns);
  expect_between("value_columns", shape.value_columns, 0, kMostColumns);
  expect_between("page_rows", shape.page_rows, kPageUnit, int64_t{1} << 40);
  if (shape.page_rows % kPageUnit != 0)
    bad("page_rows", "a multiple of " + std::to_string(kPageUnit), shape.page_rows);
  if (shape.dtype == DType::kFloat64)
    fail("kv cache: dtype: expected float32, bfloat16 or float16, but got float64");
}

const KvCache::Sequence& KvCache::at(int64_t sequence) const {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end()) bad("sequence", "one that was added and not removed", sequence);
  return found->second;
}

int64_t KvCache::add(int64_t first_position, std::optional<Rotation> rotated_by) {
  expect_between("first_position", first_position, -kFarthestPosition, kFarthestPosition);
  check_rotation(rotated_by, shape_.key_columns);
  sequences_[next_sequence_] = {.first_position = first_position,
                                .rotated_by = std::move(rotated_by)};
  return next_sequence_++;
}

int64_t KvCache::fork(int64_t sequence, int64_t rows) {
  expect_between("rows", rows, 0, at(sequence).rows);
  Sequence copy = at(sequence);
  copy.rows = rows;
  copy.pages.resize(static_cast<size_t>((rows + shape_.page_rows - 1) / shape_.page_rows));
  for (const int64_t page : copy.pages) ++users_[static_cast<size_t>(page)];
  sequences_[next_sequence_] = std::move(copy);
  return next_sequence_++;
}

void KvCache::remove(int64_t sequence) {
  truncate(sequence, 0);
  sequences_.erase(sequence);
}

int64_t KvCache::new_page() {
  if (free_.empty()) {
    free_.push_back(static_cast<int64_t>(users_.size()));
    users_.push_back(0);
    const int64_t rows = static_cast<int64_t>(users_.size()) * shape_.key_heads * shape_.page_rows;
    const auto bytes = [&](int64_t columns) {
      return static_cast<size_t>(rows * columns * key_pages().element_size());
    };
    keys_.resize(bytes(shape_.key_columns));
    values_.resize(bytes(shape_.value_columns));
  }
  const int64_t page = free_.back();
  free_.pop_back();
  users_[static_cast<size_t>(page)] = 1;
  return page;
}

void KvCache::release(int64_t page) {
  if (--users_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

void KvCache::own_page(Sequence& sequence, int64_t n) {
  int64_t& page = sequence.pages[static_cast<size_t>(n)];
  if (users_[static_cast<size_t>(page)] == 1) return;
  const int64_t copy = new_page();
  const auto copy_page = [&](const AnyView<float>& x) {
    const int64_t bytes = x.batch_stride * x.element_size();
    std::copy_n(static_cast<const std::byte*>(x.at(page, 0, 0)), bytes,
                static_cast<std::byte*>(x.at(copy, 0, 0)));
  };
  copy_page(keys());
  copy_page(values());
  release(page);
  page = copy;
}

AnyView<float> KvCache::pages_of(std::byte* data, int64_t columns) const {
  const auto view = [&]<class Number>(Number* numbers) -> AnyView<float> {
    return packed(numbers, static_cast<int64_t>(users_.size()), shape_.key_heads, shape_.page_rows,
                  columns);
  };
  if (shape_.dtype == DType::kBfloat16) return view(reinterpret_cast<Bfloat16*>(data));
  if (shape_.dtype == DType::kFloat16) return view(reinterpret_cast<Float16*>(data));
  return view(reinterpret_cast<float*>(data));
}

// The page and the row in it that hold a row of a sequence.
StoredRow KvCache::stored(const Sequence& sequence, int64_t row) const {
  return {sequence.pages[static_cast<size_t>(row / shape_.page_rows)], row % shape_.page_rows};
}

void KvCache::append_held(int64_t sequence, const AnyView<const float>& k,
                          const AnyView<const float>& v, int64_t b) {
  Sequence& t = at(sequence);
  check_rows("k", k, shape_.key_heads, k.rows, shape_.key_columns);
  check_rows("v", v, shape_.key_heads, k.rows, shape_.value_columns);
  expect_between("b", b, 0, std::min(k.batch, v.batch) - 1);
  const int64_t first = t.rows, last = first + k.rows;
  if (first % shape_.page_rows != 0 && first < last) own_page(t, first / shape_.page_rows);
  while (static_cast<int64_t>(t.pages.size()) * shape_.page_rows < last)
    t.pages.push_back(new_page());
  for (int64_t n = 0; n < k.rows; ++n) {
    copy_row(k, {b, n}, keys(), stored(t, first + n));
    copy_row(v, {b, n}, values(), stored(t, first + n));
  }
  t.rows = last;
}

void KvCache::append(int64_t sequence, const AnyView<const float>& k, const AnyView<const float>& v,
                     int64_t b) {
  const int64_t first = rows(sequence);
  append_held(sequence, k, v, b);
  Sequence& t = at(sequence);
  if (t.rotated_by)
    rotate_rows(t, first, t.rows, nullptr, 0, &*t.rotated_by, t.first_position + first);
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
  Sequence& t = at(sequence);
  expect_between("first", first, 0, t.rows);
  expect_between("count", count, 0, t.rows - first);
  const int64_t last = t.rows - count;
  if (count > 0 && first < last)
    for (int64_t n = first / shape_.page_rows; n <= (last - 1) / shape_.page_rows; ++n)
      own_page(t, n);
  for (int64_t row = first; row < last; ++row) {
    copy_row(keys(), stored(t, row + count), keys(), stored(t, row));
    copy_row(values(), stored(t, row + count), values(), stored(t, row));
  }
  truncate(sequence, last);
  if (t.rotated_by)
    rotate_rows(t, first, last, &*t.rotated_by, t.first_position + first + count, &*t.rotated_by,
                t.first_position + first);
}

void KvCache::rerotate(int64_t sequence, int64_t first_position) {
  Sequence& t = at(sequence);
  expect_between("first_position", first_position, -kFarthestPosition, kFarthestPosition);
  if (t.rotated_by)
    rotate_rows(t, 0, t.rows, &*t.rotated_by, t.first_position, &*t.rotated_by, first_position);
  t.first_position = first_position;
}

void KvCache::rerotate(int64_t sequence, const Rotation& rotation) {
  Sequence& t = at(sequence);
  if (!t.rotated_by)
    fail(
        "kv cache: rerotate: expected a sequence whose keys are held rotated, as plain keys need "
        "none");
  check_rotation(rotation, shape_.key_columns);
  if (!same_pairs(rotation, *t.rotated_by))
    fail("kv cache: rerotate: expected the pairs of columns that the keys are rotated by");
  rotate_rows(t, 0, t.rows, &*t.rotated_by, t.first_position, &rotation, t.first_position);
  t.rotated_by = rotation;
}

// Rotates rows [first, last), which `from` has rotated with the first one at from_position, so that
// they are as if rotated by `to` with the first one at to_position. The angle between them is a
// difference of exact phases: it has no error, however far apart the positions are.
void KvCache::rotate_rows(Sequence& sequence, int64_t first, int64_t last, const Rotation* from,
                          int64_t from_position, const Rotation* to, int64_t to_position) {
  const int64_t count = last - first;
  if (count == 0) return;
  for (int64_t n = first / shape_.page_rows; n <= (last - 1) / shape_.page_rows; ++n)
    own_page(sequence, n);
  const double gain = to->gain / (from ? from->gain : 1);
  const HostAnyView held(keys());
  const PositionRun rotary_positions = {.first = to_position, .count = count};
  std::vector<float> cos(static_cast<size_t>(count)), sin(static_cast<size_t>(count));
  for (size_t f = 0; f < to->pairs.size(); ++f) {
    const Rotation::Pair& pair = to->pairs[f];
    Turns speed = pair.speed, offset;
    if (from) {
      speed = speed - from->pairs[f].speed;
      offset = from->pairs[f].speed * (to_position - from_position);
    }
    cos_sin_of_positions(speed, offset, {&rotary_positions, 1}, cos.data(), sin.data());
    for (int64_t h = 0; h < shape_.key_heads; ++h)
      for (int64_t n = 0; n < count; ++n) {
        const auto [page, row] = stored(sequence, first + n);
        const double c = cos[static_cast<size_t>(n)], s = sin[static_cast<size_t>(n)];
        const double x = held(page, h, row, pair.first), y = held(page, h, row, pair.second);
        held.set(page, h, row, pair.first, gain * (x * c - y * s));
        held.set(page, h, row, pair.second, gain * (x * s + y * c));
      }
  }
}

void KvCache::read(int64_t sequence, int64_t first, const AnyView<float>& k,
                   const AnyView<float>& v) const {
  const Sequence& t = at(sequence);
  expect_between("first", first, 0, t.rows);
  expect_between("k.rows", k.rows, 0, t.rows - first);
  check_rows("k", k, shape_.key_heads, k.rows, shape_.key_columns);
  check_rows("v", v, shape_.key_heads, k.rows, shape_.value_columns);
  for (int64_t n = 0; n < k.rows; ++n) {
    copy_row(key_pages(), stored(t, first + n), k, {0, n});
    copy_row(value_pages(), stored(t, first + n), v, {0, n});
  }
}

AnyView<const float> KvCache::key_pages() const { return const_cast<KvCache*>(this)->keys(); }
AnyView<const float> KvCache::value_pages() const { return const_cast<KvCache*>(this)->values(); }

}  // namespace sextant
