#include "sextant/attention/cpu/problem.h"

#include <algorithm>
#include <memory>

#include "sextant/attention/cpu/parallel.h"
#include "sextant/base/simd/amx.h"

namespace sextant::cpu {
namespace {

PackedBias numbers(const Table<float>& table, const Diagonals& diagonals, Workspace& memory,
                   const Executor& executor) {
  PackedBias n;
  if (!table.rows || diagonals.count == 0) return n;
  n.heads = table.rows.heads;
  n.stride = round_up(diagonals.count + 2 * RowMap::kMargin, kLanes);
  n.data = memory.floats(n.heads * n.stride);
  constexpr double kSecondsOfNumber = 1e-9;
  share_out(executor, n.heads, kSecondsOfNumber * static_cast<double>(n.heads * n.stride),
            [&](int64_t h, int) {
              float* to = n.data + h * n.stride;
              const float* from = table.rows.at(0, h, 0);
              const auto at = [&](int64_t diagonal) {
                const int64_t row =
                    table.row_at.empty() ? diagonal : table.row_at[static_cast<size_t>(diagonal)];
                return from[row * table.rows.row_stride];
              };
              const int64_t end = RowMap::kMargin + diagonals.count;
              std::fill(to, to + RowMap::kMargin, at(0));
              for (int64_t d = 0; d < diagonals.count; ++d) to[RowMap::kMargin + d] = at(d);
              std::fill(to + end, to + n.stride, at(diagonals.count - 1));
            });
  return n;
}

// A row of products with A holds the positions of keys of each axis, between margins that vectors
// of keys beyond a frame's last may reach.
PackedAxis packed_axis(const HostScore<float>& s, const PositionAxis& axis, int64_t& columns,
                       int64_t& values, Workspace& memory) {
  PackedAxis packed = {.axis = &axis};
  PositionRange queries, keys;
  const int64_t rows = key_rows(s), entries = axis.key_batch_stride == 0 ? 1 : s.q.batch;
  for (const Frame& frame : s.frames)
    each_entry(frame, s.q.batch, [&](int64_t b) {
      queries.include(axis.query_positions + b * axis.query_batch_stride + frame.query_row,
                      frame.queries);
      keys.include(axis.key_positions + b * axis.key_batch_stride + frame.key_row, frame.keys);
    });
  if (queries.empty() || keys.empty()) queries = keys = {0, 0};
  packed.first_key = keys.first;
  packed.keys = keys.width() + 1;
  packed.last_query = queries.last;
  packed.column = columns + kLanes;
  if (!axis.on_query.empty()) columns = round_up(packed.column + packed.keys + kLanes, kLanes);
  packed.at = values + kLanes;
  packed.values = packed.keys + queries.width();
  if (!axis.bias.empty()) values = round_up(packed.at + packed.values + kLanes, kLanes);
  auto* const maps = reinterpret_cast<RowMap*>(
      memory.floats(entries * round_up(sizeof(RowMap), kLanes) / int64_t{sizeof(float)}));
  const auto row_at = std::span(reinterpret_cast<int32_t*>(memory.floats(entries * rows + 1)),
                                static_cast<size_t>(entries * rows));
  std::ranges::fill(row_at, 0);  // keys in no frame
  for (const Frame& frame : s.frames)
    each_entry(frame, s.q.batch, [&](int64_t b) {
      if (entries == 1) b = 0;
      for (int64_t j = frame.key_row; j < frame.key_row + frame.keys; ++j)
        row_at[static_cast<size_t>(b * rows + j)] = static_cast<int32_t>(
            axis.key_positions[b * axis.key_batch_stride + j] - packed.first_key);
    });
  for (int64_t b = 0; b < entries && rows > 0; ++b)
    std::construct_at(
        maps + b, row_at.subspan(static_cast<size_t>(b * rows), static_cast<size_t>(rows)), rows,
        /*backwards=*/false, /*rotate_rows=*/0, memory);
  packed.maps = maps;
  return packed;
}

// The values of b by distance on each axis.
AxisBias axis_values(const HostView<const float>& rows, std::span<const PackedAxis> axes,
                     int64_t stride, Workspace& memory) {
  AxisBias bias;
  if (!rows || axes.empty()) return bias;
  bias.heads = rows.heads;
  bias.stride = stride;
  bias.data = memory.floats(bias.heads * stride);
  std::fill_n(bias.data, bias.heads * stride, 0.0F);
  for (const PackedAxis& axis : axes)
    for (int64_t h = 0; h < bias.heads; ++h)
      axis.each_value(
          [&](int32_t row, int64_t at) { bias.data[h * stride + at] = rows(0, h, row, 0); });
  return bias;
}

struct Reading {
  bool rows = false;  // whether it has row-major rows
  float factor = 1;
  bool backwards = false;      // whether its tiles have keys for rows
  bool any_row_order = false;  // whether rows may be reversed: no result depends on their order
};

PackedTable vectors(Table<float> table, const Diagonals& diagonals, const Reading& reading,
                    Workspace& memory, const Executor& executor) {
  PackedTable v;
  if (!table.rows || diagonals.count == 0 || table.rows.columns == 0) return v;
  v.heads = table.rows.heads;
  v.count = table.rows.rows;
  v.columns = table.rows.columns;
  v.count16 = round_up(v.count, kLanes);
  v.columns16 = round_up(v.columns, kLanes);
  v.map = RowMap(table.row_at, diagonals.count, reading.backwards,
                 reading.any_row_order ? v.count : 0, memory);
  if (v.map.rows_reversed()) {
    table.rows.data = table.rows.at(0, 0, v.count - 1);
    table.rows.row_stride = -table.rows.row_stride;
  }
  v.factor = reading.factor;
  pack_vectors(table, reading.factor, reading.rows, v, memory, executor);
  return v;
}

int64_t terms_of(Pass pass, const HostScore<float>& s) {
  if (s.v.columns == 0 || !amx::available()) return 0;
  switch (pass) {
    case Pass::kForwardOfBfloat16:
      return 1;
    case Pass::kForwardOfTerms:
      return 3;
    case Pass::kBackwardOfTerms:  // gradients of a modulus need float32 products
      return s.q_imag ? 0 : 3;
    default:
      return 0;
  }
}

}  // namespace

Problem::Problem(const HostScore<float>& s, Pass pass, const PassPlan& plan, int64_t keys_at_once,
                 Workspace& memory, const Executor& executor)
    : score(s),
      scale(static_cast<float>(s.scale)),
      group(s.k.heads > 0 ? s.q.heads / s.k.heads : 1),
      depth(s.q.columns),
      depth16(round_up(depth, kLanes)),
      width(s.v.columns),
      width16(round_up(width, kLanes)),
      terms(terms_of(pass, s)),
      pairs(pass == Pass::kForwardOfBfloat16 && terms == 0 && width > 0),
      dots(pairs && has_dots_of_pairs()),
      unit(keys_at_once),
      blocks(plan.blocks),
      blocks_of_batch(plan.blocks_of_batch),
      rotations(plan.rotations),
      phases(plan.phases),
      origins(s.key_bias, s.frames, s.sweeps, s.q.rows, &memory) {
  weight = numbers(s.weight, s.diagonals, memory, executor);
  bias = numbers(s.bias, s.diagonals, memory, executor);
  // Weighted sums of rows are needed for the result forward, and for the gradients of q and k
  // backward.
  const bool backward = pass == Pass::kBackward || pass == Pass::kBackwardOfTerms;
  on_query =
      vectors(s.on_query, s.diagonals, {.rows = backward, .any_row_order = true}, memory, executor);
  on_key = vectors(s.on_key, s.diagonals,
                   {.rows = backward, .factor = scale, .backwards = true, .any_row_order = true},
                   memory, executor);
  on_value = vectors(s.on_value, s.diagonals, {.rows = !backward}, memory, executor);
  if (!s.axis_bias && !s.axis_on_query && !s.table_query) return;
  table_query16 = s.table_query ? round_up(s.table_query.columns, kLanes) : 0;
  const auto count = static_cast<int64_t>(s.axes.size());
  axes = {reinterpret_cast<PackedAxis*>(
              memory.floats(count * round_up(sizeof(PackedAxis), kLanes) / int64_t{sizeof(float)})),
          s.axes.size()};
  int64_t values = 0;
  for (size_t n = 0; n < axes.size(); ++n)
    std::construct_at(&axes[n], packed_axis(s, s.axes[n], axis_columns, values, memory));
  axis_bias = axis_values(s.axis_bias, axes, values, memory);
  axis_on_query = vectors({s.axis_on_query, {}}, {.count = s.axis_on_query.rows},
                          {.rows = backward}, memory, executor);
}

}  // namespace sextant::cpu
