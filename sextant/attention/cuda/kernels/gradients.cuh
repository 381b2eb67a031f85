// The gradients of a tile's scores, for the kernels of the backward pass.
//
//   p = exp(s - lse),  dP = d_out . (v + C[d]),  ds = p (m dP - mean),  mean = d_out . out
//
// where m is the factor of dropout. A key that is hidden has none.
#pragma once

#include "sextant/attention/cuda/kernels/forward.cuh"

namespace sextant::cuda {

// s becomes the weights p m, and ds the gradients of scores. d_out, keys and values are loaded.
// wants_scores: else ds is not computed.
template <class T, int kWidth, int kTile, Slope kSlope, int kFragments>
SEXTANT_DEVICE void gradients_of_tile(const Arguments& a, const ScoreTile& at, const LaneRows& rows,
                                      bool wants_scores, float (&s)[kFragments][4],
                                      float (&ds)[kFragments][4]) {
  score_tile<T, kWidth, kTile, kSlope>(a, at, rows, s);
  clear(ds);
  if (wants_scores) {
    const T* const d_out = shared_at<T>(a.shared.d_out);
    multiply<false, false>(ds, d_out + 16 * warp() * kRowOf<T, kWidth>, kRowOf<T, kWidth>,
                           shared_at<T>(a.shared.v), kRowOf<T, kWidth>, a.width16, kFragments);
    if (a.on_value.rows)
      add_on_rows<T, kWidth, kTile>(a, a.on_value, at, d_out, kRowOf<T, kWidth>, a.width16, ds);
  }
  const uint32_t kept_ones = kept_bits<kFragments>(a, at);
  each_element<kFragments>([&](int n, int e) {
    const int half = e / 2;
    const bool none = s[n][e] == -INFINITY || rows.lse[half] == -INFINITY;
    const float p = none ? 0.0F : expf(s[n][e] - rows.lse[half]);
    const float kept = has_bit(kept_ones, n, e) ? a.dropout.kept_factor : 0.0F;
    s[n][e] = p * kept;
    ds[n][e] = none ? 0.0F : p * (kept * ds[n][e] - rows.mean[half]);
  });
}

// The sums of a lane's part of ds by columns, over the 16 rows of a warp: [column of the lane].
template <int kFragments>
SEXTANT_DEVICE void sum_columns(const float (&ds)[kFragments][4], float (&sums)[kFragments][2]) {
  each_element<kFragments>([&](int n, int e) {
    if (e >= 2) return;

    float x = ds[n][e] + ds[n][e + 2];
    x += shuffle_xor(x, 4);
    x += shuffle_xor(x, 8);
    sums[n][e] = x + shuffle_xor(x, 16);
  });
}

// Turns gradients of scores into those of a part of p, or of w.
template <int kTile, int kFragments>
SEXTANT_DEVICE void scale_by_slope(const Arguments& a, Saved saved, float (&ds)[kFragments][4]) {
  each_element<kFragments>([&](int n, int e) {
    if (ds[n][e] != 0) ds[n][e] *= slope_at<kTile>(a, saved, n, e);
  });
}

// Blocks that differ in z compute different columns of a gradient: sums of wide rows would not fit
// into registers.
template <int kWidth>
inline constexpr int kSumColumns = kWidth < 128 ? kWidth : 128;
template <int kWidth>
SEXTANT_DEVICE int first_sum_column() {
  return block().z * kSumColumns<kWidth>;
}

// Adds a warp's 16 rows of sums to [batch, heads, rows, columns16] of floats, from a
// column on. row_of(r): the row, below 0 if there is none; r counts from the tile's first.
template <int kFragments, class RowOf>
SEXTANT_DEVICE void add_sums(const float (&sums)[kFragments][4], float* to, int64_t first_of_head,
                             int columns16, int first_column, const RowOf& row_of) {
  each_element<kFragments>([&](int n, int e) {
    const int c = first_column + 8 * n + lane_column(e);
    const int32_t row = row_of(tile_row(e));
    if (row < 0 || c >= columns16) return;
    to[(first_of_head + row) * columns16 + c] += sums[n][e];
  });
}

// Multiplies sums of a warp's rows by their growth, counted from the origin.
template <int kFragments>
SEXTANT_DEVICE void grow_sums(float (&sums)[kFragments][4], const Arguments& a, const ScoreTile& at,
                              bool keys, int32_t first, int32_t last, int first_column,
                              GrowthOrigin origin) {
  const SweepRows& sweep = a.sweep[at.sweep];
  if (!sweep.growth) return;
  const Positions& own = keys ? sweep.key_positions : sweep.query_positions;
  each_element<kFragments>([&](int n, int e) {
    const int c = first_column + 8 * n + lane_column(e);
    const int32_t row = first + tile_row(e);
    if (c >= a.depth || row >= last) return;
    const Channel& channel = sweep.growth[c];
    const int64_t base = at.b * own.batch_stride + channel.axis * own.rows;
    const int64_t apart = own.at[base + row] - own.at[base + origin.row];
    sums[n][e] *=
        static_cast<float>(exp(channel.growth * static_cast<double>(keys ? -apart : apart)));
  });
}

}  // namespace sextant::cuda
