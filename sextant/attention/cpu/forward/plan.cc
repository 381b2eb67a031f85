// The memory and the items of a forward pass: which queries of which heads a task computes, and the
// cut of few queries over many keys into pieces that are merged.
#include <algorithm>
#include <memory>

#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/base/simd/amx.h"

namespace sextant::cpu {
namespace {

struct Sizes {
  int64_t group, columns16, value_columns16;
  explicit Sizes(const PlanShape& shape)
      : group(shape.key_heads > 0 ? shape.heads / shape.key_heads : 1),
        columns16(round_up(shape.columns, kLanes)),
        value_columns16(round_up(shape.value_columns, kLanes)) {}
};

// Queries of each head in one item. Their panels and results share the L2 cache with a unit of keys
// and values; the more queries, the less often keys are packed.
int64_t rows_of_item(const PlanShape& shape) {
  constexpr int64_t kMostRows = 512;
  constexpr int64_t kMostRowsWithKeyTable = 128;  // k . B has a float for each query and key
  const Sizes sizes(shape);
  const int64_t rows =
      item_floats() / (sizes.group * std::max(sizes.columns16 + sizes.value_columns16, kLanes));
  return std::clamp(round_down(rows, kLanes), kLanes,
                    shape.key_table ? kMostRowsWithKeyTable : kMostRows);
}

int64_t table_rows(const Problem& p) {
  return std::max({p.on_query.count16, p.on_key.count16, p.on_value.count16});
}

// A short A is multiplied with all queries of an item at once. For each unit of keys again, the
// product would be rounded up to kLanes rows, although keys beyond the clip distance need only one.
bool has_short_table(const Problem& p) {
  constexpr int64_t kFewRows = 4 * kLanes;
  return p.on_query && p.on_query.count16 <= kFewRows;
}

// The hull of the units that an item's queries see.
KeyRange units_seen(const PassPlan& plan, std::span<const Sweep> sweeps, const ForwardItem& item) {
  const Frame& frame = plan.blocks[item.block].frame;
  KeyRange seen;
  for (const Sweep& sweep : sweeps)
    for (int64_t i = 0; i < item.rows; ++i)
      seen = hull(seen, visible_keys(sweep, frame, frame.batch, frame.query_row + item.first + i));
  if (empty(seen)) return {};
  return {(seen.first - frame.key_row) / plan.unit,
          (seen.last - frame.key_row - 1) / plan.unit + 1};
}

bool grows(const Problem& p) { return any_growth(p.rotations); }

}  // namespace

// Heads are not grouped where their products have a modulus, a B or growth, and not with dropout,
// which is not for decoding.
GroupedQueries::GroupedQueries(const Problem& p, int64_t rows, Arena& arena) {
  constexpr int64_t kMostRows = 4 * kLanes;
  if (rows > kStrip || p.group * rows > kMostRows || p.score.q_imag || p.on_key || grows(p) ||
      p.score.dropout)
    return;
  rows16 = round_up(p.group * rows, kLanes);
  const auto rotations = static_cast<int64_t>(p.rotations.list.size());
  queries = arena.take<float*>(rotations);
  products = arena.take<float*>(rotations);
  for (int64_t rotation = 0; rotation < rotations; ++rotation) {
    float* const panels = arena.floats(rows16 * p.depth16);
    float* const lines = arena.floats(rows16 * kScoreStride);
    if (!queries) continue;
    queries[rotation] = panels;
    products[rotation] = lines;
  }
  if (rotations != 1)
    weights = arena.floats(rows16 * kScoreStride);
  else if (products)
    weights = products[0];
  weight_panels = arena.floats(rows16 * kUnit);
  unit = SoftmaxState::in(arena, rows16, p.width16);
}

Tiled::Tiled(const Problem& p, Arena& arena) {
  if (p.terms == 0) return;
  const auto rotations = static_cast<int64_t>(p.rotations.list.size());
  for (int n = 0; n < kScores; ++n) {
    products[n] = arena.take<float*>(rotations);
    for (int64_t rotation = 0; rotation < rotations; ++rotation) {
      float* const lines = arena.floats(kAmxRows * kScoreStride);
      if (products[n]) products[n][rotation] = lines;
    }
    if (rotations != 1)
      scores[n] = arena.floats(kAmxRows * kScoreStride);
    else if (products[n])
      scores[n] = products[n][0];
  }
  weight_step = kAmxRows * kPairStride;
  for (int n = 0; n < kWeights; ++n) {
    weights[n] = arena.floats(p.terms * weight_step);
    units[n] = SoftmaxState::in(arena, kAmxRows, p.width16);
  }
  totals = arena.floats(kAmxRows * amx::TileQueue::kTotals);
  value_step = amx::paired(p.unit) * p.width16;
  values = arena.floats(p.terms * value_step);
}

ForwardScratch::ForwardScratch(const Problem& p, int64_t rows, Arena& arena)
    : rows16(round_up(rows, kLanes)),
      grouped(p, rows, arena),
      tiled(p, arena),
      visibility(p, rows16, arena),
      keys(p, Side::kKey, static_cast<bool>(p.on_key), p.unit, arena),
      values(arena.floats(p.unit * p.width16)),
      value_pairs(p.pairs ? arena.floats(std::max(p.unit / 2, kLanes) * p.width16) : nullptr),
      factors(arena.floats(p.depth16)),
      key_products(p, rows16, arena),
      table_queries(p.table_query16 > 0 ? arena.floats(p.group * rows16 * p.table_query16)
                                        : nullptr),
      axis_products(p.axis_on_query ? arena.floats(p.group * rows16 * p.axis_columns) : nullptr),
      axis_scratch(p.axis_on_query ? arena.floats(rows16 * p.axis_on_query.count16) : nullptr),
      query_products(has_short_table(p) ? arena.floats(p.group * rows16 * p.on_query.count16)
                                        : nullptr),
      table_products(arena.fenced_floats(kLanes * table_rows(p))),
      weights(arena.floats(kStrip * kUnit)),
      unit(SoftmaxState::in(arena, kLanes, p.width16)),
      all(SoftmaxState::in(arena, p.group * rows16, p.width16)),
      fresh(arena.take<uint8_t>(p.group * rows16 / kStrip)) {
  const auto queries = [&](int64_t sets) {
    Panels* const list = sets > 0 ? arena.take<Panels>(sets) : nullptr;
    for (int64_t n = 0; n < sets; ++n) {
      const Panels own(p, Side::kQuery, p.reads_plain_queries(), rows16, arena);
      if (list) std::construct_at(list + n, own);
    }
    return std::span(list, list ? static_cast<size_t>(sets) : 0);
  };
  const bool modulus = static_cast<bool>(p.score.q_imag);
  heads = queries(p.group);
  imaginary = queries(modulus ? p.group : 0);
  grown = queries(grows(p) ? 1 : 0);
  grown_imaginary = queries(grows(p) && modulus ? 1 : 0);
  for (ScoreStrip* to : {&strip, &second}) {
    to->scores = to->real = arena.floats(kStrip * kScoreStride);
    to->imaginary = modulus ? arena.floats(kStrip * kScoreStride) : nullptr;
  }
}

void ForwardItems::renew(const PassPlan& plan, std::span<const Sweep> sweeps,
                         const PlanShape& shape, int workers) {
  item_rows = rows_of_item(shape);
  items.clear();
  merges.clear();
  states_size = 0;
  seconds = 0;
  constexpr double kSecondsOfPair = 2e-11;  // per query, key, and column of k and v
  constexpr double kSecondsOfKey = 4e-10;   // per key and column of k and v, from memory
  const Sizes sizes(shape);
  const double columns = static_cast<double>(sizes.columns16 + sizes.value_columns16);
  int64_t most_rows = 0;
  for (size_t n = 0; n < plan.blocks.size(); ++n) {
    const Frame& frame = plan.blocks[n].frame;
    most_rows = std::max(most_rows, std::min(frame.queries, item_rows));
    const KeyRange units = {0, (frame.keys + plan.unit - 1) / plan.unit};
    for (int64_t key_head = 0; key_head < shape.key_heads; ++key_head)
      for (int64_t first = 0; first < frame.queries; first += item_rows)
        items.push_back({.block = n,
                         .key_head = key_head,
                         .first = first,
                         .rows = std::min(item_rows, frame.queries - first),
                         .units = units});
    seconds += columns * static_cast<double>(frame.keys) *
               (kSecondsOfPair * static_cast<double>(shape.heads * frame.queries) +
                kSecondsOfKey * static_cast<double>(shape.key_heads));
  }
  item_rows = most_rows;
  std::ranges::reverse(items);  // later causal queries see more keys: long items first
  cut_units(plan, sweeps, shape, workers);
  states_room = std::max(states_room, states_size);
}

// Few queries over many keys (decoding) would keep few threads busy. They are cut into items of a
// few units each; not of one unit, because every item prepares its queries.
void ForwardItems::cut_units(const PassPlan& plan, std::span<const Sweep> sweeps,
                             const PlanShape& shape, int workers) {
  constexpr int64_t kFewRows = 64;
  const Sizes sizes(shape);
  if (workers == 1 || items.empty() || static_cast<int64_t>(items.size()) >= 4 * int64_t{workers})
    return;
  const int64_t pieces = 8 * int64_t{workers} / static_cast<int64_t>(items.size());
  uncut_ = items;  // not swapped, so that each list keeps its own memory
  items.clear();
  for (ForwardItem& item : uncut_) {
    const int64_t rows = sizes.group * round_up(item.rows, kStrip);
    if (rows <= kFewRows) item.units = units_seen(plan, sweeps, item);
    if (rows > kFewRows || item.units.last - item.units.first < 2) {
      items.push_back(item);
      continue;
    }
    item.partial = states_size;
    item.first_unit = item.units.first;
    merges.push_back(item);
    states_size += (item.units.last - item.units.first) * rows * (2 + sizes.value_columns16);
    const int64_t step = (item.units.last - item.units.first + pieces - 1) / pieces;
    for (int64_t unit = item.units.first; unit < item.units.last; unit += step) {
      items.push_back(item);
      items.back().units = {unit, std::min(unit + step, item.units.last)};
    }
  }
}

}  // namespace sextant::cpu
