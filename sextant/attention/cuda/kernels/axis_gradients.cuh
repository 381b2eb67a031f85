// Sums of the gradients of scores by distance along further axes, without atomics. A block has a
// part of the tiles of queries of one head, in order, and walks over their keys as the forward pass
// does.
//
//   b     for each row of the table, the sum of ds_ij over the block's queries         kBias
//   dU    for each query and row of A, the sum of the gradients of products with A     kTable
//         (axes.cuh)
//
// A row of b has one thread, which visits all elements of a tile in order; a query and every second
// row of A have another.
#pragma once

#include "sextant/attention/cuda/kernels/gradients.cuh"

namespace sextant::cuda {

// Writes gradients to shared memory and calls f() for each axis with such a map, where the rows
// that the elements have lie beside them; -1: none. All threads call it.
template <int kTile, int kFragments, class F>
SEXTANT_DEVICE void each_axis(const Arguments& a, const ScoreTile& at,
                              const float (&ds)[kFragments][4], const int32_t* AxisRows::*map,
                              F&& f) {
  float* const tile = shared_at<float>(a.shared.skew);
  sync_block();
  store_weights<float, kTile>(ds, tile);
  for (int32_t n = 0; n < a.axis_count; ++n) {
    const AxisRows& axis = a.axes[n];
    if (!(axis.*map)) continue;
    sync_block();
    for (int e = thread(); e < kTile * kTile; e += threads()) {
      const int i = e / kTile, j = e % kTile;
      // Keys that are hidden have gradients of 0, and maybe no distance.
      const bool none = tile[i * Sizes<kTile>::kWeightsRow + j] == 0;
      shared_at<int32_t>(a.shared.axis_rows)[e] =
          none ? -1 : (axis.*map)[axis_index(axis, at.b, at.first_query + i, at.first_key + j)];
    }
    sync_block();
    f();
  }
}

template <class T, int kWidth, int kTile>
SEXTANT_KERNEL void axis_gradients(const Arguments a) {
  constexpr int kFragments = Sizes<kTile>::kFragments, kRow = Sizes<kTile>::kWeightsRow;
  const int32_t part = static_cast<int32_t>(block().x), h = block().y;
  const int64_t all = a.item_count;
  const float* const tile = shared_at<float>(a.shared.skew);
  const int32_t* const row_at = shared_at<int32_t>(a.shared.axis_rows);
  for (int64_t item = part * all / a.blocks; item < (part + 1) * all / a.blocks; ++item) {
    ScoreTile at = tile_of_queries(a, item, h);
    sync_block();
    load_d_out<T, kWidth, kTile>(a, at);
    each_key_tile<T, kWidth, kTile>(
        a, static_cast<int32_t>(item), at, &FoundInKeys::keys,
        [&](bool, const LaneRows& rows) {
          float s[kFragments][4], ds[kFragments][4];
          gradients_of_tile<T, kWidth, kTile, Slope::kOfProducts>(a, at, rows, true, s, ds);
          if ((a.what & kBias) != 0) {
            double* const sums =
                a.axis_bias_sums + (static_cast<int64_t>(part) * a.heads + h) * a.axis_bias_rows;
            each_axis<kTile>(a, at, ds, &AxisRows::bias, [&] {
              for (int e = 0; e < kTile * kTile; ++e)
                if (row_at[e] >= 0 && row_at[e] % threads() == thread())
                  sums[row_at[e]] += static_cast<double>(tile[e / kTile * kRow + e % kTile]);
            });
          }
          if ((a.what & kTable) == 0) return;
          if (!a.table_query) scale_by_slope<kTile>(a, Saved::kReal, ds);
          const int i = thread() / 2;
          float* const sums = a.d_axis_products +
                              query_index(a, at.b, at.h, at.first_query + i) * a.axis_table_rows;
          each_axis<kTile>(a, at, ds, &AxisRows::on_query, [&] {
            for (int j = 0; j < kTile; ++j) {
              const int32_t row = row_at[i * kTile + j];
              if (row >= 0 && row % 2 == thread() % 2) sums[row] += tile[i * kRow + j];
            }
          });
        },
        [](GrowthOrigin) {});
  }
}

}  // namespace sextant::cuda
