// Gradients of tables by distance, without atomics. A block owns a band of diagonals: the tiles of
// queries and keys whose corner (the diagonal of the first query and key) is `band` * kTile, in all
// frames and batch entries. They meet the diagonals from corner - (kTile - 1) to corner + kTile -
// 1, so a diagonal lies in at most two bands, whose sums are added later in order (kFoldTable),
// with those of all diagonals that share a row of the table.
//
//   A[d]   sum over i - j = d of e_ij q_i       table_gradients; with r, of ds_ij r_i
//   B[d]   sum of e_ij k_j                      table_gradients
//   C[d]   sum of p_ij m_ij d_out_i             table_gradients
//   b[d]   sum of ds_ij                         scalar_gradients
//   w[d]   sum of ds_ij times the derivative of s_ij by w[d]     scalar_gradients
#pragma once

#include "sextant/attention/cuda/kernels/key_gradients.cuh"

namespace sextant::cuda {

// Whether any query of a tile sees a key of at.first_key's tile in the sweep.
template <int kTile>
SEXTANT_DEVICE bool meets(const Arguments& a, const ScoreTile& at) {
  const int32_t n = (at.first_query - at.frame->query_row) / kTile;
  const int32_t entry = at.frame->batch < 0 ? at.b : 0;
  const int32_t item = at.frame->first_tile + entry * at.frame->tiles + n;
  const KeySpan span = a.spans[item * a.sweeps + at.sweep];
  return span.first < span.last && span.first < at.first_key + kTile && at.first_key < span.last;
}

// Calls f(found, lane's rows) for each tile of the band, in order, with tiles loaded.
template <class T, int kWidth, int kTile, class F>
SEXTANT_DEVICE void each_tile_of_band(const Arguments& a, ScoreTile& at, F&& f) {
  const int64_t corner = block().x * kTile;
  for (int frame = 0; frame < a.frame_count; ++frame) {
    at.frame = a.frames + frame;
    const int32_t first = at.frame->batch < 0 ? 0 : at.frame->batch;
    const int32_t last = at.frame->batch < 0 ? a.batch : first + 1;
    for (at.b = first; at.b < last; ++at.b)
      for (at.first_query = at.frame->query_row; at.first_query < at.last_query();
           at.first_query += kTile) {
        const int64_t key = corner - at.frame->diagonal + (at.first_query - at.frame->query_row);
        if (key <= -kTile || key >= at.frame->keys) continue;
        at.first_key = static_cast<int32_t>(at.frame->key_row + key);
        for (at.sweep = 0; at.sweep < a.sweeps; ++at.sweep) {
          if (!meets<kTile>(a, at)) continue;
          const GrowthOrigin origin = middle_of_queries(at, kTile);
          sync_block();
          load_by_diagonal<kTile>(a, at);
          bool found = load_queries<T, kWidth, kTile>(a, at, origin);
          found |= load_d_out<T, kWidth, kTile>(a, at);
          found |= load_keys<T, kWidth, kTile>(a, at, origin).keys;
          found = sync_block_any(found);
          f(found, lane_rows(a, at));
        }
      }
  }
}

// Writes elements to a tile of the block, [kTile][row], by diagonal, beside zeros. The rows are
// queries, or keys.
template <class T, int kTile, int kFragments>
SEXTANT_DEVICE void store_by_diagonal(const float (&s)[kFragments][4], bool keys, T* to, int row) {
  constexpr int kDiagonals = Sizes<kTile>::kDiagonals;
  sync_block();
  for (int n = thread(); n < kTile * kDiagonals; n += threads())
    to[n / kDiagonals * row + n % kDiagonals] = narrow<T>(0);
  sync_block();
  each_element<kFragments>([&](int n, int e) {
    const int i = tile_row(e), j = 8 * n + lane_column(e);
    to[(keys ? j : i) * row + j - i + kTile - 1] = narrow<T>(s[n][e]);
  });
  sync_block();
}

template <class T, int kWidth, int kTile>
SEXTANT_KERNEL void table_gradients(const Arguments a) {
  constexpr int kFragments = Sizes<kTile>::kFragments, kColumns = 64, kOutFragments = kColumns / 8;
  constexpr int kRow = Sizes<kTile>::kDiagonals + 8;
  const int first_column = block().z * kColumns;
  const bool by_key = a.table == TableOf::kOnKey, of_values = a.table == TableOf::kOnValue;
  const bool outside = a.table_query && a.table == TableOf::kOnQuery;  // of p
  const TableRows& table = of_values ? a.on_value : by_key ? a.on_key : a.on_query;
  const int columns16 = round_up_16(table.rows.columns);
  const int columns = columns16 - first_column < kColumns ? columns16 - first_column : kColumns;
  ScoreTile at;
  at.h = block().y;
  at.key_head = at.h / a.group;
  float sums[2][kOutFragments][4];  // of 32 diagonals for each warp
  clear(sums[0]);
  clear(sums[1]);
  T* const tile = shared_at<T>(a.shared.skewed);
  each_tile_of_band<T, kWidth, kTile>(a, at, [&](bool found, const LaneRows& rows) {
    float s[kFragments][4], ds[kFragments][4];
    gradients_of_tile<T, kWidth, kTile, Slope::kOfProducts>(a, at, rows, !of_values, s, ds);
    if (!outside) scale_by_slope<kTile>(a, Saved::kReal, ds);
    if (of_values) each_element<kFragments>([&](int n, int e) { ds[n][e] = s[n][e]; });
    store_by_diagonal<T, kTile>(ds, by_key, tile, kRow);
    const T* const factor = shared_at<T>(of_values ? a.shared.d_out
                                         : by_key  ? a.shared.k_raw
                                                   : a.shared.q_raw);
    SEXTANT_UNROLL
    for (int m = 0; m < 2; ++m)
      multiply<true, true>(sums[m], tile + 32 * warp() + 16 * m, kRow, factor + first_column,
                           kRowOf<T, kWidth>, kTile, columns / 8, found);
  });
  float* const to = a.sums + (at.h * a.bands + block().x) * Sizes<kTile>::kDiagonals * columns16;
  SEXTANT_UNROLL
  for (int m = 0; m < 2; ++m)
    each_element<kOutFragments>([&](int n, int e) {
      const int c = 8 * n + lane_column(e);
      if (c >= columns) return;
      to[(32 * warp() + 16 * m + lane_row(e)) * columns16 + first_column + c] += sums[m][n][e];
    });
}

// The sums of the diagonals of a tile, one for each thread of the block.
template <int kTile, int kFragments>
SEXTANT_DEVICE float sum_of_diagonal(const Arguments& a, const float (&s)[kFragments][4]) {
  constexpr int kRow = Sizes<kTile>::kDiagonals + 4;
  float* const tile = shared_at<float>(a.shared.skewed);
  store_by_diagonal<float, kTile>(s, false, tile, kRow);
  float sum = 0;
  for (int i = 0; i < kTile; ++i) sum += tile[i * kRow + thread()];
  return sum;
}

template <class T, int kWidth, int kTile>
SEXTANT_KERNEL void scalar_gradients(const Arguments a) {
  constexpr int kFragments = Sizes<kTile>::kFragments, kDiagonals = Sizes<kTile>::kDiagonals;
  static_assert(kDiagonals == 32 * Sizes<kTile>::kWarps);
  ScoreTile at;
  at.h = block().y;
  at.key_head = at.h / a.group;
  float sum = 0;
  each_tile_of_band<T, kWidth, kTile>(a, at, [&](bool, const LaneRows& rows) {
    float s[kFragments][4], ds[kFragments][4];
    gradients_of_tile<T, kWidth, kTile, Slope::kOfWeight>(a, at, rows, true, s, ds);
    if (a.table == TableOf::kWeight) scale_by_slope<kTile>(a, Saved::kReal, ds);
    sum += sum_of_diagonal<kTile>(a, ds);
  });
  a.sums[(at.h * a.bands + block().x) * kDiagonals + thread()] += sum;
}

}  // namespace sextant::cuda
