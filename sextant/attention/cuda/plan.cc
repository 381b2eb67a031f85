#include "sextant/attention/cuda/plan.h"

#include <algorithm>
#include <limits>
#include <string>

#include "sextant/attention/by_frame.h"
#include "sextant/base/error.h"

namespace sextant::cuda {
namespace {

constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max() / 2;

// The keys that the queries of a tile see in a sweep, from a multiple of `tile` keys of the frame.
KeySpan span_of(const Sweep& sweep, const Frame& frame, int64_t b, int64_t first, int64_t last,
                int32_t tile) {
  KeyRange all = {std::numeric_limits<int64_t>::max(), 0};
  for (int64_t i = first; i < last; ++i) {
    const KeyRange seen = visible_keys(sweep, frame, b, i);
    if (seen.first >= seen.last) continue;
    all.first = std::min(all.first, seen.first);
    all.last = std::max(all.last, seen.last);
  }
  if (all.first >= all.last) return {};
  const int64_t offset = (all.first - frame.key_row) / tile * tile;
  return {static_cast<int32_t>(frame.key_row + offset), static_cast<int32_t>(all.last)};
}

void add_query_tiles(const Plan& plan, const PlanShape& shape, const Frame& frame, int32_t tile,
                     PassPlan& pass) {
  const auto number = static_cast<int32_t>(pass.frames.size());
  pass.frames.push_back(
      {.query_row = static_cast<int32_t>(frame.query_row),
       .queries = static_cast<int32_t>(frame.queries),
       .key_row = static_cast<int32_t>(frame.key_row),
       .keys = static_cast<int32_t>(frame.keys),
       .diagonal = plan.diagonals.index(frame.distance(frame.query_row, frame.key_row)),
       .batch = static_cast<int32_t>(frame.batch),
       .first_tile = static_cast<int32_t>(pass.query_tiles.size()),
       .tiles = static_cast<int32_t>((frame.queries + tile - 1) / tile)});
  const int64_t end = frame.query_row + frame.queries;
  each_entry(frame, shape.batch, [&](int64_t b) {
    for (int64_t i = frame.query_row; i < end; i += tile) {
      pass.query_tiles.push_back({static_cast<int32_t>(b), number, static_cast<int32_t>(i)});
      for (const Sweep& sweep : plan.sweeps)
        pass.spans.push_back(span_of(sweep, frame, b, i, std::min(i + tile, end), tile));
    }
  });
}

// Tiles of keys begin at multiples of `tile` rows of k: the bits of a gradient do not depend on
// where.
void add_key_tiles(const PlanShape& shape, size_t sweeps, int32_t tile, PassPlan& pass) {
  const int64_t tiles = (shape.keys + tile - 1) / tile;
  std::vector<std::vector<KeyTilePart>> parts(static_cast<size_t>(shape.batch * tiles));
  for (size_t n = 0; n < sweeps; ++n)
    for (size_t at = 0; at < pass.query_tiles.size(); ++at) {
      const QueryTile& query = pass.query_tiles[at];
      const KeySpan span = pass.spans[at * sweeps + n];
      if (span.first >= span.last) continue;
      const FrameRows& frame = pass.frames[static_cast<size_t>(query.frame)];
      const int32_t end = std::min(query.first_query + tile, frame.query_row + frame.queries);
      for (int64_t t = span.first / tile; t <= (span.last - 1) / tile; ++t) {
        auto& list = parts[static_cast<size_t>(query.batch * tiles + t)];
        const auto sweep = static_cast<int32_t>(n);
        if (!list.empty() && list.back().frame == query.frame && list.back().sweep == sweep)
          list.back().last_query = end;
        else
          list.push_back({query.frame, sweep, query.first_query, end});
      }
    }
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t t = 0; t < tiles; ++t) {
      const auto& list = parts[static_cast<size_t>(b * tiles + t)];
      if (list.empty()) continue;
      pass.key_tiles.push_back({static_cast<int32_t>(b), static_cast<int32_t>(pass.parts.size()),
                                static_cast<int32_t>(list.size()), static_cast<int32_t>(t * tile)});
      pass.parts.insert(pass.parts.end(), list.begin(), list.end());
    }
}

PassPlan pass_of(const Plan& plan, const PlanShape& shape, std::span<const Frame> frames,
                 int32_t tile, Passes passes) {
  PassPlan pass;
  for (const Frame& frame : frames)
    if (frame.queries > 0) add_query_tiles(plan, shape, frame, tile, pass);
  if (passes == Passes::kBoth) add_key_tiles(shape, plan.sweeps.size(), tile, pass);
  pass.queries = shape.queries;
  pass.keys = shape.keys;
  return pass;
}

}  // namespace

std::vector<PassPlan> passes_of(const Plan& plan, const PlanShape& shape, int32_t tile,
                                Passes passes) {
  std::vector<PassPlan> list;
  if (!differs_by_frame(plan.sweeps)) {
    list.push_back(pass_of(plan, shape, plan.frames, tile, passes));
    return list;
  }
  for (size_t n = 0; n < plan.frames.size(); ++n) {
    const Frame& frame = plan.frames[n];
    if (frame.queries == 0) continue;
    PassPlan& pass = list.emplace_back(pass_of(plan, shape, {&frame, 1}, tile, passes));
    pass.frame = static_cast<int64_t>(n);
    pass.first_query = frame.query_row, pass.queries = frame.queries;
    pass.first_key = frame.key_row, pass.keys = frame.keys;
  }
  return list;
}

std::vector<Visible> visible_rows(const Plan& plan, const PlanShape& shape) {
  const auto of_sweep = static_cast<size_t>(shape.batch * shape.queries);
  std::vector<Visible> rows(plan.sweeps.size() * of_sweep);
  for (size_t n = 0; n < plan.sweeps.size(); ++n)
    for (const Frame& frame : plan.frames)
      each_entry(frame, shape.batch, [&](int64_t b) {
        for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i) {
          const KeyRange seen = visible_keys(plan.sweeps[n], frame, b, i);
          if (seen.first >= seen.last) continue;
          rows[n * of_sweep + static_cast<size_t>(b * shape.queries + i)] = {
              static_cast<int32_t>(seen.first), static_cast<int32_t>(seen.last)};
        }
      });
  return rows;
}

bool covers_queries(const Plan& plan, const PlanShape& shape) {
  int64_t inside = 0;  // a query is in at most one frame
  for (const Frame& frame : plan.frames)
    inside += frame.queries * (frame.batch == kEveryBatch ? shape.batch : 1);
  return inside == shape.batch * shape.queries;
}

DiagonalsOfRows diagonals_of_rows(std::span<const int32_t> row_at, int64_t diagonals,
                                  int64_t rows) {
  const auto row_of = [&](int64_t d) {
    return row_at.empty() ? static_cast<int32_t>(d) : row_at[static_cast<size_t>(d)];
  };
  DiagonalsOfRows of;
  of.row_begin.assign(static_cast<size_t>(rows) + 1, 0);
  for (int64_t d = 0; d < diagonals; ++d) ++of.row_begin[static_cast<size_t>(row_of(d)) + 1];
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) of.row_begin[r + 1] += of.row_begin[r];
  std::vector<int32_t> next(of.row_begin.begin(), of.row_begin.end() - 1);
  of.diagonal_at.resize(static_cast<size_t>(diagonals));
  for (int64_t d = 0; d < diagonals; ++d)
    of.diagonal_at[static_cast<size_t>(next[static_cast<size_t>(row_of(d))]++)] =
        static_cast<int32_t>(d);
  return of;
}

void expect_at_most(const char* field, int64_t most, int64_t got) {
  if (got > most)
    fail("attention: " + std::string(field) + ": expected at most " + std::to_string(most) +
         " for the backend \"cuda\", but got " + std::to_string(got));
}

void check_sizes(const Plan& plan, const PlanShape& shape) {
  expect_at_most("sweeps", kMostSweeps, static_cast<int64_t>(plan.sweeps.size()));
  expect_at_most("q.rows", kMostRows, shape.queries);
  expect_at_most("k.rows", kMostRows, shape.keys);
  expect_at_most("diagonals", kMostRows, plan.diagonals.count);
  expect_at_most("q.heads", 65535, shape.heads);
  expect_at_most("q.batch", 65535, shape.batch);
  expect_at_most("q.columns", kMostColumns, shape.columns);
  expect_at_most("v.columns", kMostColumns, shape.value_columns);
}

}  // namespace sextant::cuda
