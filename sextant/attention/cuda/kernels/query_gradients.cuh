// Gradients that owners of queries compute: those of q, q_imag and query_bias. A block owns a tile
// of queries of one head and walks over the tiles of keys as the forward pass does.
//
//   rotated q of a sweep   sum over its keys of e_ij R k_j             kProducts
//   rotated q_imag         sum of e'_ij R k_j                          kImaginary
//   q                      sum over all keys of e_ij A[d]              kTable
//   table_query            sum over all keys of ds_ij A[d]             kTable, in its own launch
//
// e and e' are the gradients of the two parts of p, ds those of scores. The sums of a sweep are
// rotated back later.
#pragma once

#include "sextant/attention/cuda/kernels/gradients.cuh"

namespace sextant::cuda {

// Hidden elements are 0, as is what is there already, and may have no diagonal.
template <class Element, int kFragments>
SEXTANT_DEVICE void write_query_bias(const Arguments& a, const ScoreTile& at,
                                     const float (&ds)[kFragments][4]) {
  each_element<kFragments>([&](int n, int e) {
    const int r = tile_row(e), c = 8 * n + lane_column(e);
    if (ds[n][e] != 0)
      static_cast<Element*>(a.d_query_bias.data)[place_of(
          a.d_query_bias, at.b, at.h, at.first_query + r, at.corner() + c - r)] =
          narrow<Element>(ds[n][e]);
  });
}

template <class T, int kWidth, int kTile>
SEXTANT_KERNEL void query_gradients(const Arguments a) {
  constexpr int kFragments = Sizes<kTile>::kFragments, kOutFragments = kSumColumns<kWidth> / 8;
  const int32_t item = block().x;
  const int column = first_sum_column<kWidth>();
  ScoreTile at = tile_of_queries(a, item, block().y);
  float sums[kOutFragments][4];
  clear(sums);
  const int64_t head = query_index(a, at.b, at.h, 0);
  const bool outside = a.table_query && (a.what & kTable) != 0;  // of p
  const int columns16 = outside ? round_up_16(a.table_query.columns) : a.depth16;
  const auto row_of = [&](int r) {
    const int32_t i = at.first_query + r;
    return i < at.last_query() ? i : -1;
  };
  load_d_out<T, kWidth, kTile>(a, at);
  each_key_tile<T, kWidth, kTile>(
      a, item, at, &FoundInKeys::keys,
      [&](bool found, const LaneRows& rows) {
        float s[kFragments][4], ds[kFragments][4];
        gradients_of_tile<T, kWidth, kTile, Slope::kOfProducts>(a, at, rows, true, s, ds);
        if ((a.what & kBias) != 0 && column == 0) {
          if (a.d_query_bias.type == Stored::kBfloat16)
            write_query_bias<Bf16>(a, at, ds);
          else if (a.d_query_bias.type == Stored::kFloat16)
            write_query_bias<Fp16>(a, at, ds);
          else
            write_query_bias<float>(a, at, ds);
        }
        const bool imaginary = (a.what & kImaginary) != 0;
        if (!outside) scale_by_slope<kTile>(a, imaginary ? Saved::kImaginary : Saved::kReal, ds);
        if ((a.what & (kProducts | kImaginary)) != 0)
          add_keys<T, kTile>(a, ds, shared_at<T>(a.shared.k) + column, kRowOf<T, kWidth>,
                             a.depth16 - column, found, sums);
        if ((a.what & kTable) != 0)
          add_table_rows<T, kWidth, kTile>(a, a.on_query, at, round_up_16(a.on_query.rows.columns),
                                           column, ds, sums);
      },
      [&](GrowthOrigin origin) {
        if (a.sums_of_sweep == 0) return;
        grow_sums(sums, a, at, false, at.first_query, at.last_query(), column, origin);
        add_sums(sums, a.sums + at.sweep * a.sums_of_sweep, head, a.depth16, column, row_of);
        clear(sums);
      });
  if (a.sums_of_sweep == 0 && a.sums) add_sums(sums, a.sums, head, columns16, column, row_of);
}

}  // namespace sextant::cuda
