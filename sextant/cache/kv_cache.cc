#include "sextant/cache/kv_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sextant/attention/rotary/cos_sin.h"
#include "sextant/base/error.h"
#include "sextant/base/packed.h"

namespace sextant {
namespace {

constexpr int64_t kMostColumns = int64_t{1} << 20;
constexpr int64_t kFarthestPosition = int64_t{1} << 52;  // check_score.cc

[[noreturn]] void bad(const std::string& field, const std::string& expected, int64_t got) {
  fail("kv cache: " + field + ": expected " + expected + ", but got " + std::to_string(got));
}

void expect_between(const std::string& field, int64_t got, int64_t low, int64_t high) {
  if (got < low || got > high) bad(field, std::to_string(low) + " to " + std::to_string(high), got);
}

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
  if (heads * rows * columns > 0 && !x.data) fail("kv cache: " + name + ": expected data");
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

bool same(const Rotation& a, const Rotation& b) {
  return a.gain == b.gain && std::ranges::equal(a.pairs, b.pairs, [](const auto& x, const auto& y) {
           return x.first == y.first && x.second == y.second && x.speed == y.speed &&
                  x.growth == y.growth && x.axis == y.axis;
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

CachedBatch::CachedBatch(const KvCache& cache, std::span<const Entry> entries, int64_t queries)
    : k_(cache.key_pages()),
      v_(cache.value_pages()),
      page_rows_(cache.shape().page_rows),
      queries_(queries) {
  expect_between("queries", queries, 0, kFarthestPosition);
  for (const Entry& entry : entries) rows_ = std::max(rows_, cache.rows(entry.sequence));
  pages_per_sequence_ = (rows_ + page_rows_ - 1) / page_rows_;
  plan_.frames.reserve(entries.size());
  key_positions_.reserve(entries.size() * static_cast<size_t>(rows_));
  query_positions_.reserve(entries.size() * static_cast<size_t>(queries));
  table_.reserve(entries.size() * static_cast<size_t>(pages_per_sequence_) + 1);
  for (size_t b = 0; b < entries.size(); ++b) {
    add_frame(cache, entries[b].sequence, static_cast<int64_t>(b));
    add_ranges(group_of(cache, entries[b]), static_cast<int64_t>(b));
    const bool held = cache.rotated_by(entries[b].sequence).has_value();
    members_.push_back({entries[b].sequence, held ? entries[b].rotation : nullptr});
  }
  table_.push_back(0);  // the table's address must not be null, even without rows
  for (const RotationGroup& group : groups_)
    plan_.sweeps.push_back({.query = {.rotation = group.query,
                                      .rotary_positions = query_positions_.data(),
                                      .batch_stride = queries},
                            .key = {.rotation = group.key,
                                    .rotary_positions = key_positions_.data(),
                                    .batch_stride = rows_},
                            .key_ranges = group.key_ranges.data(),
                            .batch_stride = queries});
  plan_.diagonals = {.farthest = std::max<int64_t>(rows_ - 1, 0),
                     .count = std::max<int64_t>(rows_, 0)};
  plan_.pages = {.at = table_.data(), .batch_stride = pages_per_sequence_, .rows = rows_};
}

void CachedBatch::add_frame(const KvCache& cache, int64_t sequence, int64_t b) {
  const int64_t rows = cache.rows(sequence), first = cache.first_position(sequence);
  expect_between("queries", queries_, 0, rows);
  plan_.frames.push_back({.batch = b,
                          .queries = queries_,
                          .query_position = first + rows - queries_,
                          .keys = rows,
                          .key_position = first});
  for (int64_t n = 0; n < rows_; ++n) key_positions_.push_back(first + n);
  for (int64_t n = rows - queries_; n < rows; ++n) query_positions_.push_back(first + n);
  const std::span<const int64_t> pages = cache.pages(sequence);
  table_.insert(table_.end(), pages.begin(), pages.end());
  // Shorter sequences are padded with page 0; their frames end before it.
  table_.resize(static_cast<size_t>((b + 1) * pages_per_sequence_), 0);
}

size_t CachedBatch::group_of(const KvCache& cache, const Entry& entry) {
  const std::optional<Rotation>& held = cache.rotated_by(entry.sequence);
  if (held && !(entry.rotation && same(*held, *entry.rotation)))
    fail("kv cache: batch: sequence " + std::to_string(entry.sequence) +
         ": expected the rotation by which its keys are held rotated");
  const Rotation* of_keys = held ? nullptr : entry.rotation;
  const auto found = std::ranges::find_if(groups_, [&](const RotationGroup& group) {
    return group.query == entry.rotation && group.key == of_keys;
  });
  if (found != groups_.end()) return static_cast<size_t>(found - groups_.begin());
  groups_.push_back({.query = entry.rotation, .key = of_keys, .key_ranges = {}});
  return groups_.size() - 1;
}

// The queries of entry b see keys in the sweep of their own group, and none in the other sweeps.
void CachedBatch::add_ranges(size_t own, int64_t b) {
  const int64_t rows = plan_.frames.back().keys;
  for (size_t n = 0; n < groups_.size(); ++n) {
    std::vector<KeyRange>& key_ranges = groups_[n].key_ranges;
    key_ranges.resize(static_cast<size_t>((b + 1) * queries_));
    for (int64_t i = 0; n == own && i < queries_; ++i)
      key_ranges[static_cast<size_t>(b * queries_ + i)] = {0, rows - queries_ + i + 1};
  }
}

// Strings are made for an Error only: decoding calls this for each layer and step.
void CachedBatch::set_keys(Operands<float>& operands, const KvCache& cache) const {
  if (cache.shape().page_rows != page_rows_)
    bad("batch: page_rows", std::to_string(page_rows_), cache.shape().page_rows);
  for (size_t b = 0; b < members_.size(); ++b) {
    const auto& [sequence, rotated_by] = members_[b];
    const auto refuse = [id = sequence](const std::string& reason) {
      fail("kv cache: batch: sequence " + std::to_string(id) + ": " + reason);
    };
    const auto expect_same = [&](const char* field, int64_t got, int64_t expected) {
      if (got != expected)
        refuse(std::string(field) + ": expected " + std::to_string(expected) + ", but got " +
               std::to_string(got));
    };
    if (!cache.holds(sequence)) refuse("expected it, but it is missing");
    expect_same("rows", cache.rows(sequence), plan_.frames[b].keys);
    expect_same("first_position", cache.first_position(sequence), plan_.frames[b].key_position);
    const std::optional<Rotation>& held = cache.rotated_by(sequence);
    if (rotated_by ? !held || !same(*held, *rotated_by) : held.has_value())
      refuse("rotated_by: expected that of the batch, but got another");
    const auto own = std::span(table_).subspan(b * static_cast<size_t>(pages_per_sequence_));
    const std::span<const int64_t> pages = cache.pages(sequence);
    if (!std::ranges::equal(pages, own.first(pages.size())))
      refuse("pages: expected those of the batch, but got others");
  }
  operands.k = cache.key_pages();
  operands.v = cache.value_pages();
}

void CachedBatch::place(Score<float>& score) const {
  score.k = k_;
  score.v = v_;
  static_cast<Plan&>(score) = plan_;
}

}  // namespace sextant
