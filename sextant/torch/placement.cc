#include "sextant/torch/placement.h"

#include <ATen/ops/empty.h>

#include <string>

#include "sextant/error.h"

namespace sextant {
namespace {

// Positions are below this (sextant/attention/check_score.cc), so adding it to one cannot overflow.
constexpr int64_t kEverything = int64_t{1} << 53;

[[noreturn]] void bad(const std::string& field, const std::string& expected, int64_t got) {
  fail("placement: " + field + ": expected " + expected + ", but got " + std::to_string(got));
}

void check_lengths(const std::string& field, const std::vector<int64_t>& sums, int64_t rows) {
  if (sums.empty()) bad(field, "cumulative lengths, as the other side is packed", 0);
  if (sums.front() != 0) bad(field, "to start at 0", sums.front());
  if (sums.back() != rows) bad(field, "to end at " + std::to_string(rows) + " rows", sums.back());
  for (size_t n = 1; n < sums.size(); ++n)
    if (sums[n] < sums[n - 1]) bad(field, "cumulative lengths that never fall", sums[n]);
}

void check(const Placement& p) {
  for (const auto& [field, size] :
       {std::pair{"batch", p.batch}, {"queries", p.queries}, {"keys", p.keys}})
    if (size < 0) bad(field, "at least 0", size);
  if (p.packed_queries.empty() && p.packed_keys.empty()) return;
  check_lengths("packed_queries", p.packed_queries, p.queries);
  check_lengths("packed_keys", p.packed_keys, p.keys);
  if (p.packed_queries.size() != p.packed_keys.size())
    bad("packed_keys", std::to_string(p.packed_queries.size()) + " entries, as packed_queries",
        static_cast<int64_t>(p.packed_keys.size()));
  if (p.first_query != 0) bad("first_query", "0, as texts are packed", p.first_query);
  if (p.first_key != 0) bad("first_key", "0, as texts are packed", p.first_key);
}

// The distances that are seen, in the order of diagonals; empty if last < first.
struct Distances {
  int64_t nearest = 0, farthest = -1;
};

Distances distances(const Placement& p) {
  Distances seen;
  bool any = false;
  for (const Frame& text : texts(p)) {
    if (text.queries == 0 || text.keys == 0) continue;
    const int64_t last_query = text.query_row + text.queries - 1;
    const int64_t last_key = text.key_row + text.keys - 1;
    int64_t nearest = text.distance(text.query_row, last_key);
    const int64_t farthest = text.distance(last_query, text.key_row);
    if (p.causal) nearest = std::max<int64_t>(nearest, 0);
    if (farthest < nearest) continue;
    seen.nearest = any ? std::min(seen.nearest, nearest) : nearest;
    seen.farthest = any ? std::max(seen.farthest, farthest) : farthest;
    any = true;
  }
  return seen;
}

// For each query the keys at distances -after .. before.
at::Tensor runs(const Placement& p, int64_t before, int64_t after) {
  at::Tensor result = at::empty({1, p.queries, 2}, at::kLong);
  int64_t* run = result.data_ptr<int64_t>();
  for (const Frame& text : texts(p))
    for (int64_t n = 0; n < text.queries; ++n) {
      // The row of a key at the query's own position.
      const int64_t here = text.query_position + n - text.key_position + text.key_row;
      *run++ = std::clamp(here - before, text.key_row, text.key_row + text.keys);
      *run++ = std::clamp(here + after + 1, text.key_row, text.key_row + text.keys);
    }
  return result;
}

}  // namespace

std::vector<Frame> texts(const Placement& p) {
  check(p);
  if (p.packed_queries.empty())
    return {{.queries = p.queries,
             .query_position = p.first_query,
             .keys = p.keys,
             .key_position = p.first_key}};
  std::vector<Frame> result;
  for (size_t n = 0; n + 1 < p.packed_queries.size(); ++n) {
    const int64_t queries = p.packed_queries[n + 1] - p.packed_queries[n];
    const int64_t keys = p.packed_keys[n + 1] - p.packed_keys[n];
    result.push_back({.query_row = p.packed_queries[n],
                      .queries = queries,
                      .query_position = keys - queries,
                      .key_row = p.packed_keys[n],
                      .keys = keys});
  }
  return result;
}

int64_t Placement::nearest_distance() const { return distances(*this).nearest; }
int64_t Placement::farthest_distance() const { return distances(*this).farthest; }

Diagonals Placement::diagonals() const {
  const Distances seen = distances(*this);
  return {.farthest = seen.farthest, .count = seen.farthest - seen.nearest + 1};
}

at::Tensor frames(const Placement& p) {
  const std::vector<Frame> all = texts(p);
  at::Tensor result = at::empty({static_cast<int64_t>(all.size()), 7}, at::kLong);
  int64_t* to = result.data_ptr<int64_t>();
  for (const Frame& f : all)
    for (const int64_t field :
         {f.batch, f.query_row, f.queries, f.query_position, f.key_row, f.keys, f.key_position})
      *to++ = field;
  return result;
}

at::Tensor visible_runs(const Placement& p) {
  return runs(p, kEverything, p.causal ? 0 : kEverything);
}

at::Tensor window_runs(const Placement& p, int64_t window) {
  return runs(p, window - 1, window - 1);
}

at::Tensor query_positions(const Placement& p) {
  at::Tensor result = at::empty({p.queries}, at::kLong);
  int64_t* to = result.data_ptr<int64_t>();
  for (const Frame& text : texts(p))
    for (int64_t n = 0; n < text.queries; ++n) *to++ = text.query_position + n;
  return result;
}

at::Tensor key_positions(const Placement& p) {
  at::Tensor result = at::empty({p.keys}, at::kLong);
  int64_t* to = result.data_ptr<int64_t>();
  for (const Frame& text : texts(p))
    for (int64_t n = 0; n < text.keys; ++n) *to++ = text.key_position + n;
  return result;
}

}  // namespace sextant
