#include <algorithm>
#include <string>

#include "sextant/base/error.h"
#include "sextant/cache/cache_checks.h"
#include "sextant/cache/kv_cache.h"

namespace sextant {

using namespace cache_checks;

bool same_rotation(const Rotation& a, const Rotation& b) {
  return a.gain == b.gain && std::ranges::equal(a.pairs, b.pairs, [](const auto& x, const auto& y) {
           return x.first == y.first && x.second == y.second && x.speed == y.speed &&
                  x.growth == y.growth && x.axis == y.axis;
         });
}

CachedBatch::CachedBatch(const KvCache& cache, std::span<const Entry> entries, int64_t queries)
    : page_rows_(cache.shape().page_rows), queries_(queries) {
  expect_between("queries", queries, 0, kFarthestPosition);
  entries_.assign(entries.begin(), entries.end());
  renew(cache);
}

void CachedBatch::renew(const KvCache& cache) {
  set(cache, [&](int64_t sequence) { return cache.rows(sequence); });
}

CachedBatch::CachedBatch(const KvCache& cache, std::span<const Entry> entries, int64_t queries,
                         int64_t rows)
    : page_rows_(cache.shape().page_rows), queries_(queries) {
  entries_.assign(entries.begin(), entries.end());
  set(cache, [rows](int64_t) { return rows; });
}

template <class RowsOf>
void CachedBatch::set(const KvCache& cache, RowsOf rows_of) {
  k_ = cache.key_pages();
  v_ = cache.value_pages();
  k_int8_ = cache.int8_key_pages();
  v_int8_ = cache.int8_value_pages();
  rows_ = 0;
  for (const Entry& entry : entries_) {
    const int64_t rows = rows_of(entry.sequence);
    // Before memory is spent on them. The message of expect_between() is memory, too.
    if (queries_ > rows) expect_between("queries", queries_, 0, rows);
    rows_ = std::max(rows_, rows);
  }
  pages_per_sequence_ = (rows_ + page_rows_ - 1) / page_rows_;
  plan_.frames.clear();
  key_positions_.clear();
  query_positions_.clear();
  table_.clear();
  members_.clear();
  plan_.frames.reserve(entries_.size());
  key_positions_.reserve(entries_.size() * static_cast<size_t>(rows_));
  query_positions_.reserve(entries_.size() * static_cast<size_t>(queries_));
  table_.reserve(entries_.size() * static_cast<size_t>(pages_per_sequence_) + 1);
  for (RotationGroup& group : groups_) group.key_ranges.clear();
  for (size_t n = 0; n < entries_.size(); ++n) {
    const Entry& entry = entries_[n];
    const auto b = static_cast<int64_t>(n);
    add_frame(cache, b, rows_of);
    add_ranges(group_of(cache, entry), b);
    const bool held = cache.rotated_by(entry.sequence).has_value();
    members_.push_back({entry.sequence, held ? entry.rotation : nullptr});
  }
  table_.push_back(0);  // the table's address must not be null, even without rows
  add_sweeps();
  plan_.diagonals = {.farthest = std::max<int64_t>(rows_ - 1, 0),
                     .count = std::max<int64_t>(rows_, 0)};
  plan_.pages = {.at = table_.data(), .batch_stride = pages_per_sequence_, .rows = rows_};
}

void CachedBatch::add_sweeps() {
  plan_.sweeps.clear();
  for (const RotationGroup& group : groups_)
    plan_.sweeps.push_back({.query = {.rotation = group.query,
                                      .rotary_positions = query_positions_.data(),
                                      .batch_stride = queries_},
                            .key = {.rotation = group.key,
                                    .rotary_positions = key_positions_.data(),
                                    .batch_stride = rows_},
                            .key_ranges = group.key_ranges.data(),
                            .batch_stride = queries_});
}

template <class RowsOf>
void CachedBatch::add_frame(const KvCache& cache, int64_t b, RowsOf rows_of) {
  const int64_t sequence = entries_[static_cast<size_t>(b)].sequence;
  const int64_t rows = rows_of(sequence), first = cache.first_position(sequence);
  plan_.frames.push_back({.batch = b,
                          .queries = queries_,
                          .query_position = first + rows - queries_,
                          .keys = rows,
                          .key_position = first});
  for (int64_t n = 0; n < rows_; ++n) key_positions_.push_back(first + n);
  for (int64_t n = rows - queries_; n < rows; ++n) query_positions_.push_back(first + n);
  const std::span<const int64_t> pages = cache.pages(sequence);
  table_.insert(table_.end(), pages.begin(),
                pages.begin() + std::min(std::ssize(pages), pages_per_sequence_));
  // Shorter sequences are padded with a page that exists; their frames end before it.
  table_.resize(static_cast<size_t>((b + 1) * pages_per_sequence_),
                k_.batch > 0 || !k_int8_ ? 0 : -1);
}

size_t CachedBatch::group_of(const KvCache& cache, const Entry& entry) {
  const std::optional<Rotation>& held = cache.rotated_by(entry.sequence);
  if (held && !(entry.rotation && same_rotation(*held, *entry.rotation)))
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
    if (rotated_by ? !held || !same_rotation(*held, *rotated_by) : held.has_value())
      refuse("rotated_by: expected that of the batch, but got another");
    const auto own = std::span(table_).subspan(b * static_cast<size_t>(pages_per_sequence_));
    const std::span<const int64_t> pages = cache.pages(sequence);
    if (!std::ranges::equal(pages, own.first(pages.size())))
      refuse("pages: expected those of the batch, but got others");
  }
  operands.k = cache.key_pages();
  operands.v = cache.value_pages();
  operands.k_int8 = cache.int8_key_pages();
  operands.v_int8 = cache.int8_value_pages();
}

void CachedBatch::place(Score<float>& score) const {
  score.k = k_;
  score.v = v_;
  score.k_int8 = k_int8_;
  score.v_int8 = v_int8_;
  static_cast<Plan&>(score) = plan_;
}

}  // namespace sextant
