#include "sextant/attention/cpu/problem.h"

#include <algorithm>

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
}

}  // namespace sextant::cpu
