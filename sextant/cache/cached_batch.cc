// A step of decoding is a frame for each sequence, of the rows from the unit in which its first
// query's window begins. Sequences whose queries and keys are rotated alike form a group, which is
// one sweep.
#include <algorithm>
#include <string>

#include "sextant/base/error.h"
#include "sextant/cache/cache_checks.h"
#include "sextant/cache/kv_cache.h"

namespace sextant {

using namespace cache_checks;

bool same_rotation(const Rotation& a, const Rotation& b) {
  return a.gain == b.gain && std::ranges::equal(a.pairs, b.pairs, [](const auto& x, const auto& y) {
           return x.first == y.first && x.second == y.second && x.frequency == y.frequency &&
                  x.growth == y.growth && x.axis == y.axis;
         });
}

Frame cached_frame(const KvCache& cache, int64_t sequence, int64_t rows, int64_t queries) {
  const int64_t first = cache.first_position(sequence);
  return {.queries = queries,
          .query_position = first + rows - queries,
          .keys = rows,
          .key_position = first};
}

ProvisionalRows::ProvisionalRows(KvCache& cache, std::span<const int64_t> sequences)
    : cache_(cache) {
  for (const int64_t sequence : sequences)
    before_.push_back({sequence, cache.rows(sequence), cache.rotated_keys(sequence).has_value()});
}

ProvisionalRows::~ProvisionalRows() {
  for (const auto& [sequence, rows, rotated_keys] : before_) {
    cache_.truncate(sequence, rows);
    if (rows == 0 && !rotated_keys) cache_.set_rotated_keys(sequence, {});
  }
}

namespace {

// The first of `row` + 1 rows that a query at the last one sees.
int64_t first_seen(int64_t row, int64_t window) {
  return window == 0 ? 0 : std::max<int64_t>(row - window + 1, 0);
}

}  // namespace

CachedBatch::CachedBatch(const KvCache& cache, std::span<const Entry> entries, int64_t queries,
                         std::span<const int64_t> counts, std::optional<int64_t> rows)
    : page_rows_(cache.shape().page_rows),
      queries_(queries),
      entries_(entries.begin(), entries.end()) {
  expect_between("queries", queries, 0, kFarthestPosition);
  for (const Entry& entry : entries_)
    if (entry.window < 0)
      bad("batch: sequence " + std::to_string(entry.sequence) + ": window", "at least 0",
          entry.window);
  set(cache, counts, rows);
}

void CachedBatch::set_counts(std::span<const int64_t> counts) {
  if (counts.empty()) return counts_.assign(entries_.size(), queries_);
  if (counts.size() != entries_.size())
    bad("counts", std::to_string(entries_.size()) + ", one for each sequence of the batch",
        std::ssize(counts));
  counts_.assign(counts.begin(), counts.end());
  for (const int64_t count : counts_)
    if (count < 0 || count > queries_) expect_between("counts", count, 0, queries_);
}

void CachedBatch::set(const KvCache& cache, std::span<const int64_t> counts,
                      std::optional<int64_t> rows_of_all) {
  set_counts(counts);
  const auto rows_of = [&](int64_t sequence) { return rows_of_all.value_or(cache.rows(sequence)); };
  k_ = cache.key_pages();
  v_ = cache.value_pages();
  k_int8_ = cache.int8_key_pages();
  v_int8_ = cache.int8_value_pages();
  rows_ = 0;
  int64_t seen = 0;  // the most rows that a query sees
  for (size_t b = 0; b < entries_.size(); ++b) {
    const int64_t rows = rows_of(entries_[b].sequence);
    // Before memory is spent on them. The message of expect_between() is memory, too.
    if (counts_[b] > rows) expect_between("queries", counts_[b], 0, rows);
    rows_ = std::max(rows_, rows);
    seen = std::max(seen, rows - first_seen(rows - 1, entries_[b].window));
  }
  pages_per_sequence_ = (rows_ + page_rows_ - 1) / page_rows_;
  plan_.frames.clear();
  table_.clear();
  members_.clear();
  plan_.frames.reserve(entries_.size());
  table_.reserve(entries_.size() * static_cast<size_t>(pages_per_sequence_) + 1);
  for (RotationGroup& group : groups_) group.key_ranges.clear();
  for (size_t n = 0; n < entries_.size(); ++n) {
    const Entry& entry = entries_[n];
    const auto b = static_cast<int64_t>(n);
    add_frame(cache, b, rows_of(entry.sequence), rows_of_all.has_value());
    add_ranges(group_of(cache, entry), b, rows_of_all.has_value());
    const bool held = cache.rotated_keys(entry.sequence).has_value();
    members_.push_back({entry.sequence, held ? entry.rotation : nullptr});
  }
  table_.push_back(0);  // the table's address must not be null, even without rows
  add_sweeps();
  plan_.diagonals = {.farthest = std::max<int64_t>(seen - 1, 0), .count = seen};
  plan_.pages = {.at = table_.data(), .batch_stride = pages_per_sequence_, .rows = rows_};
}

void CachedBatch::add_sweeps() {
  plan_.sweeps.clear();
  for (const RotationGroup& group : groups_)
    plan_.sweeps.push_back({.query = {.rotation = group.query},
                            .key = {.rotation = group.key},
                            .key_ranges = group.key_ranges.data(),
                            .batch_stride = queries_});
}

void CachedBatch::add_frame(const KvCache& cache, int64_t b, int64_t rows, bool whole) {
  const auto& [sequence, rotation, window] = entries_[static_cast<size_t>(b)];
  const int64_t queries = counts_[static_cast<size_t>(b)];
  Frame& frame = plan_.frames.emplace_back(cached_frame(cache, sequence, rows, queries));
  const int64_t unseen = whole ? 0 : first_seen(rows - queries, window) / kFrameUnit * kFrameUnit;
  frame.batch = b;
  frame.key_row = unseen;
  frame.keys -= unseen;
  frame.key_position += unseen;
  const std::span<const int64_t> pages = cache.pages(sequence);
  table_.insert(table_.end(), pages.begin(),
                pages.begin() + std::min(std::ssize(pages), pages_per_sequence_));
  // Shorter sequences are padded with a page that exists; their frames end before it.
  table_.resize(static_cast<size_t>((b + 1) * pages_per_sequence_),
                k_.batch > 0 || !k_int8_ ? 0 : -1);
}

size_t CachedBatch::group_of(const KvCache& cache, const Entry& entry) {
  const std::optional<Rotation>& held = cache.rotated_keys(entry.sequence);
  if (held && !(entry.rotation && same_rotation(*held, *entry.rotation)))
    fail("kv cache: batch: sequence " + std::to_string(entry.sequence) +
         ": expected the rotation of its rotated keys");
  const Rotation* of_keys = held ? nullptr : entry.rotation;
  const auto found = std::ranges::find_if(groups_, [&](const RotationGroup& group) {
    return group.query == entry.rotation && group.key == of_keys;
  });
  if (found != groups_.end()) return static_cast<size_t>(found - groups_.begin());
  groups_.push_back({.query = entry.rotation, .key = of_keys, .key_ranges = {}});
  return groups_.size() - 1;
}

// The queries of entry b see keys in the sweep of their own group, and none in the other sweeps.
// Of a whole frame they see one unit more: as many units as of any other of its rows.
void CachedBatch::add_ranges(size_t own, int64_t b, bool whole) {
  const auto& frame = plan_.frames.back();
  const int64_t first = frame.key_row + frame.keys - frame.queries;  // the first query's own row
  int64_t window = std::min(entries_[static_cast<size_t>(b)].window, kFarthestPosition);
  if (whole && window > 0) window += kFrameUnit;
  for (size_t n = 0; n < groups_.size(); ++n) {
    std::vector<KeyRange>& key_ranges = groups_[n].key_ranges;
    key_ranges.resize(static_cast<size_t>((b + 1) * queries_));
    for (int64_t i = 0; n == own && i < frame.queries; ++i)
      key_ranges[static_cast<size_t>(b * queries_ + i)] = {first_seen(first + i, window),
                                                           first + i + 1};
  }
}

// Strings are made for an Error only: decoding calls this for each layer and step.
void CachedBatch::set_keys(Operands<float>& operands, const KvCache& cache) const {
  if (cache.shape().page_rows != page_rows_)
    bad("batch: page_rows", std::to_string(page_rows_), cache.shape().page_rows);
  for (size_t b = 0; b < members_.size(); ++b) {
    const auto& [sequence, rotated_keys] = members_[b];
    const auto refuse = [id = sequence](const std::string& reason) {
      fail("kv cache: batch: sequence " + std::to_string(id) + ": " + reason);
    };
    const auto expect_same = [&](const char* field, int64_t got, int64_t expected) {
      if (got != expected)
        refuse(std::string(field) + ": expected " + std::to_string(expected) + ", but got " +
               std::to_string(got));
    };
    if (!cache.holds(sequence)) refuse("expected it, but it is missing");
    const Frame& frame = plan_.frames[b];
    expect_same("rows", cache.rows(sequence), frame.key_row + frame.keys);
    expect_same("first_position", cache.first_position(sequence),
                frame.key_position - frame.key_row);
    const std::optional<Rotation>& held = cache.rotated_keys(sequence);
    if (rotated_keys ? !held || !same_rotation(*held, *rotated_keys) : held.has_value())
      refuse("rotated_keys: expected that of the batch, but got another");
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
