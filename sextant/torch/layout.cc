#include "sextant/torch/layout.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "sextant/base/error.h"

namespace sextant {
namespace {

// Positions are at most half of this (sextant/attention/check_plan.cc), so sums with it cannot
// overflow.
constexpr int64_t kEverything = int64_t{1} << 53;

[[noreturn]] void bad(const std::string& field, const std::string& expected, int64_t got) {
  fail("layout: " + field + ": expected " + expected + ", but got " + std::to_string(got));
}

void check_lengths(const std::string& field, const std::vector<int64_t>& sums, int64_t rows) {
  if (sums.empty()) bad(field, "cumulative lengths, as the other side is packed", 0);
  if (sums.front() != 0) bad(field, "to start at 0", sums.front());
  if (sums.back() != rows) bad(field, "to end at " + std::to_string(rows) + " rows", sums.back());
  for (size_t n = 1; n < sums.size(); ++n)
    if (sums[n] < sums[n - 1]) bad(field, "cumulative lengths that never fall", sums[n]);
}

void check_cached(const Layout& p) {
  if (!p.packed_queries.empty() || !p.packed_keys.empty())
    fail("layout: cached: expected no packed sequences beside those of a cache");
  int64_t queries = 0, keys = 0;
  for (const Frame& sequence : p.cached) {
    if (sequence.query_row != queries)
      bad("cached.query_row", std::to_string(queries) + ", behind the sequence before",
          sequence.query_row);
    if (sequence.queries < 0) bad("cached.queries", "at least 0", sequence.queries);
    if (sequence.key_row < keys)
      bad("cached.key_row", "at least " + std::to_string(keys) + ", behind the sequence before",
          sequence.key_row);
    if (sequence.keys < 0 || sequence.keys > p.keys - sequence.key_row)
      bad("cached.keys", "0 to " + std::to_string(p.keys - sequence.key_row), sequence.keys);
    queries += sequence.queries;
    keys = sequence.key_row + sequence.keys;
  }
  if (queries != p.queries)
    bad("cached.queries", std::to_string(p.queries) + " in all sequences", queries);
}

void check(const Layout& p) {
  for (const auto& [field, size] :
       {std::pair{"batch", p.batch}, {"queries", p.queries}, {"keys", p.keys}})
    if (size < 0) bad(field, "at least 0", size);
  if (!p.cached.empty()) return check_cached(p);
  if (p.packed_queries.empty() && p.packed_keys.empty()) return;
  check_lengths("packed_queries", p.packed_queries, p.queries);
  check_lengths("packed_keys", p.packed_keys, p.keys);
  if (p.packed_queries.size() != p.packed_keys.size())
    bad("packed_keys", std::to_string(p.packed_queries.size()) + " entries, as packed_queries",
        static_cast<int64_t>(p.packed_keys.size()));
  if (p.first_query != 0) bad("first_query", "0, as sequences are packed", p.first_query);
  if (p.first_key != 0) bad("first_key", "0, as sequences are packed", p.first_key);
}

// The lowest and highest visible distance; there is none if farthest < nearest.
struct Distances {
  int64_t nearest = 0, farthest = -1;
};

Distances distances(const Layout& p) {
  Distances seen;
  bool any = false;
  for (const Frame& sequence : sequences(p)) {
    if (sequence.queries == 0 || sequence.keys == 0) continue;
    const int64_t last_query = sequence.query_row + sequence.queries - 1;
    const int64_t last_key = sequence.key_row + sequence.keys - 1;
    int64_t nearest = sequence.distance(sequence.query_row, last_key);
    const int64_t farthest = sequence.distance(last_query, sequence.key_row);
    if (p.causal) nearest = std::max<int64_t>(nearest, 0);
    if (farthest < nearest) continue;
    seen.nearest = any ? std::min(seen.nearest, nearest) : nearest;
    seen.farthest = any ? std::max(seen.farthest, farthest) : farthest;
    any = true;
  }
  return seen;
}

// For each query, at a position, the keys of its sequence at positions within_positions(position).
template <class F>
at::Tensor key_ranges(const Layout& p, F&& within_positions) {
  at::Tensor result = at::empty({1, p.queries, 2}, at::kLong);
  int64_t* range = result.data_ptr<int64_t>();
  for (const Frame& sequence : sequences(p))
    for (int64_t n = 0; n < sequence.queries; ++n) {
      const KeyRange seen = within_positions(sequence.query_position + n);
      for (const int64_t position : {seen.first, seen.last})
        *range++ = std::clamp(position - sequence.key_position + sequence.key_row, sequence.key_row,
                              sequence.key_row + sequence.keys);
    }
  return result;
}

at::Tensor rotary_positions(const std::string& field, const at::Tensor& given,
                            const at::Tensor& positions, int64_t batch, int64_t axes) {
  const int64_t rows = positions.size(0);
  if (!given.defined()) return positions.view({1, 1, rows}).expand({1, axes, rows}).contiguous();
  if (given.scalar_type() != at::kLong || !given.is_cpu() || given.dim() != 3 ||
      (given.size(0) != 1 && given.size(0) != batch) || given.size(2) != rows)
    fail("layout: " + field + ": expected int64 [1 or " + std::to_string(batch) + ", axes, " +
         std::to_string(rows) + "] on the CPU, but got " + at::toString(given.scalar_type()) +
         " of " + std::to_string(given.dim()) + " dimensions on " + given.device().str());
  if (given.size(1) != axes)
    bad(field, std::to_string(axes) + " axes, as the method follows", given.size(1));
  return given;
}

}  // namespace

std::vector<Frame> sequences(const Layout& p) {
  check(p);
  if (!p.cached.empty()) return p.cached;
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

int64_t Layout::nearest_distance() const { return distances(*this).nearest; }
int64_t Layout::farthest_distance() const { return distances(*this).farthest; }

Diagonals Layout::diagonals() const {
  const Distances seen = distances(*this);
  return {.farthest = seen.farthest, .count = seen.farthest - seen.nearest + 1};
}

at::Tensor frames(const Layout& p) {
  const std::vector<Frame> all = sequences(p);
  at::Tensor result = at::empty({static_cast<int64_t>(all.size()), 7}, at::kLong);
  int64_t* to = result.data_ptr<int64_t>();
  for (const Frame& f : all)
    for (const int64_t field :
         {f.batch, f.query_row, f.queries, f.query_position, f.key_row, f.keys, f.key_position})
      *to++ = field;
  return result;
}

at::Tensor visible_ranges(const Layout& p) {
  return near_ranges(p, kEverything, p.causal ? 0 : kEverything);
}

at::Tensor near_ranges(const Layout& p, int64_t before, int64_t after) {
  return key_ranges(p, [&](int64_t at) { return KeyRange{at - before, at + after + 1}; });
}

at::Tensor chunk_ranges(const Layout& p, int64_t size, int64_t origin, int64_t beside) {
  return key_ranges(p, [&](int64_t at) {
    const int64_t start = at - ((at - origin) % size + size) % size;
    return KeyRange{start - beside * size, start + (beside + 1) * size};
  });
}

at::Tensor first_ranges(const Layout& p, int64_t count) {
  at::Tensor result = at::empty({1, p.queries, 2}, at::kLong);
  int64_t* range = result.data_ptr<int64_t>();
  for (const Frame& sequence : sequences(p))
    for (int64_t n = 0; n < sequence.queries; ++n) {
      *range++ = sequence.key_row;
      *range++ = sequence.key_row + std::min(count, sequence.keys);
    }
  return result;
}

at::Tensor query_rotary_positions(const Layout& p, int64_t axes) {
  return rotary_positions("query_rotary_positions", p.query_rotary_positions, query_positions(p),
                          p.batch, axes);
}

at::Tensor key_rotary_positions(const Layout& p, int64_t axes) {
  return rotary_positions("key_rotary_positions", p.key_rotary_positions, key_positions(p), p.batch,
                          axes);
}

const at::Tensor& query_token_ids(const Layout& p) {
  const at::Tensor& token_ids = p.token_ids;
  const std::string expected =
      "int64 [" + std::to_string(p.batch) + ", " + std::to_string(p.queries) + "] on the CPU";
  if (!token_ids.defined())
    fail("layout: token_ids: expected " + expected +
         ", as the method goes by them, but there are none");
  if (token_ids.scalar_type() != at::kLong || !token_ids.is_cpu() || token_ids.dim() != 2 ||
      token_ids.size(0) != p.batch || token_ids.size(1) != p.queries)
    fail("layout: token_ids: expected " + expected + ", but got " +
         at::toString(token_ids.scalar_type()) + " of " + std::to_string(token_ids.dim()) +
         " dimensions and " + std::to_string(token_ids.numel()) + " elements on " +
         token_ids.device().str());
  return token_ids;
}

at::Tensor query_positions(const Layout& p) {
  at::Tensor result = at::empty({p.queries}, at::kLong);
  int64_t* to = result.data_ptr<int64_t>();
  for (const Frame& sequence : sequences(p))
    for (int64_t n = 0; n < sequence.queries; ++n) *to++ = sequence.query_position + n;
  return result;
}

at::Tensor key_positions(const Layout& p) {
  at::Tensor result = at::zeros({p.keys}, at::kLong);
  int64_t* to = result.data_ptr<int64_t>();
  for (const Frame& sequence : sequences(p))
    for (int64_t n = 0; n < sequence.keys; ++n)
      to[sequence.key_row + n] = sequence.key_position + n;
  return result;
}

at::Tensor sequence_starts(const Layout& p) {
  at::Tensor result = at::empty({p.queries}, at::kLong);
  int64_t* to = result.data_ptr<int64_t>();
  for (const Frame& sequence : sequences(p))
    to = std::fill_n(to, sequence.queries, sequence.key_position);
  return result;
}

}  // namespace sextant
