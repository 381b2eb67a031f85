// Gradients that owners of keys compute: those of k, v and key_bias. A block owns a tile of keys of
// one head of keys and walks over the queries that may see it, in all heads of the group.
//
//   rotated k of a sweep   sum over its queries of e_ij R q_i    kProducts
//                          and, with q_imag, of e'_ij R q'_i     kImaginary
//   k                      sum over all queries of e_ij B[d]     kTable
//   key_bias               sum of ds_ij, for each query head     kBias
//   v                      sum of p_ij m_ij d_out_i              value_gradients
#pragma once

#include "sextant/attention/cuda/kernels/gradients.cuh"

namespace sextant::cuda {

// Calls f(found, lane's rows) for each tile of queries in each part, with tiles loaded; `found`:
// whether they have an infinity or NaN. done(origin of growth) is called behind the last part of
// each sweep.
template <class T, int kWidth, int kTile, class F, class Done>
SEXTANT_DEVICE void each_query_tile(const Arguments& a, const KeyTile& tile, ScoreTile& at, F&& f,
                                    Done&& done) {
  for (int n = 0; n < tile.parts; ++n) {
    const KeyTilePart part = a.parts[tile.first_part + n];
    at.frame = a.frames + part.frame;
    at.sweep = part.sweep;
    at.first_query = part.first_query;
    const int32_t middle = at.first_key + kTile / 2;
    const GrowthOrigin origin = {true, middle < a.keys ? middle : a.keys - 1};
    sync_block();
    const bool keys_found = load_keys<T, kWidth, kTile>(a, at, origin).keys;
    for (int h = 0; h < a.group; ++h) {
      at.h = at.key_head * a.group + h;
      for (at.first_query = part.first_query; at.first_query < part.last_query;
           at.first_query += kTile) {
        sync_block();
        load_by_diagonal<kTile>(a, at);
        bool found = load_queries<T, kWidth, kTile>(a, at, origin);
        if (a.shared.d_out >= 0) found |= load_d_out<T, kWidth, kTile>(a, at);
        found = sync_block_any(found || keys_found);
        f(found, lane_rows(a, at));
      }
    }
    if (n + 1 == tile.parts || a.parts[tile.first_part + n + 1].sweep != part.sweep) done(origin);
  }
}

SEXTANT_DEVICE ScoreTile tile_of_keys(const KeyTile& tile, int32_t key_head) {
  ScoreTile at;
  at.b = tile.batch;
  at.key_head = key_head;
  at.first_key = tile.first_key;
  return at;
}

// Writes elements to a tile [kTile keys][kSkewedRow] by diagonal, beside zeros. All threads call
// it; the block is synchronised before and behind.
template <class T, int kTile, int kFragments>
SEXTANT_DEVICE void store_skewed_by_key(const float (&s)[kFragments][4], T* to) {
  using Size = Sizes<kTile>;
  sync_block();
  for (int n = thread(); n < kTile * Size::kWindow; n += threads())
    to[n / Size::kWindow * Size::kSkewedRow + n % Size::kWindow] = narrow<T>(0);
  sync_block();
  each_element<kFragments>([&](int n, int e) {
    const int j = 8 * n + lane_column(e);
    to[j * Size::kSkewedRow + j % 16 - tile_row(e) + kTile - 1] = narrow<T>(s[n][e]);
  });
  sync_block();
}

// Adds the transpose of a block's tile of weights, times a tile of rows of queries.
template <class T, int kTile, int kFragments, int kOutFragments>
SEXTANT_DEVICE void add_queries(const Arguments& a, const float (&s)[kFragments][4], const T* rows,
                                int row, int columns16, bool found,
                                float (&sums)[kOutFragments][4]) {
  T* const weights = shared_at<T>(a.shared.weights);
  sync_block();
  store_weights<T, kTile>(s, weights);
  sync_block();
  multiply<true, true>(sums, weights + 16 * warp(), Sizes<kTile>::kWeightsRow, rows, row, kTile,
                       columns16 / 8, found);
}

// Adds the sums of ds over a tile's queries to d_key_bias, which this block owns.
template <int kTile, int kFragments>
SEXTANT_DEVICE void add_key_bias(const Arguments& a, const ScoreTile& at,
                                 const float (&ds)[kFragments][4]) {
  float sums[kFragments][2];
  sum_columns(ds, sums);
  float* const of_warps = shared_at<float>(a.shared.skew);  // [warps][kTile]
  sync_block();
  if (thread() % 32 < 4) {
    each_element<kFragments>([&](int n, int e) {
      if (e >= 2) return;
      of_warps[warp() * kTile + 8 * n + lane_column(e)] = sums[n][e];
    });
  }
  sync_block();
  const int32_t last = at.frame->key_row + at.frame->keys;
  const int32_t j = at.first_key + thread();
  if (thread() < kTile && j >= at.frame->key_row && j < last) {
    float sum = 0;
    for (int w = 0; w < kTile / 16; ++w) sum += of_warps[w * kTile + thread()];
    // These sums are floats of their own until they are stored.
    static_cast<float*>(a.d_key_bias.data)[place_of(a.d_key_bias, at.b, at.h, j, 0)] += sum;
  }
}

template <class T, int kWidth, int kTile>
SEXTANT_KERNEL void key_gradients(const Arguments a) {
  constexpr int kFragments = Sizes<kTile>::kFragments, kOutFragments = kSumColumns<kWidth> / 8;
  using Size = Sizes<kTile>;
  const KeyTile tile = a.key_tiles[block().x];
  const int column = first_sum_column<kWidth>();
  ScoreTile at = tile_of_keys(tile, block().y);
  float sums[kOutFragments][4];
  clear(sums);
  const int64_t head = (static_cast<int64_t>(at.b) * a.key_heads + at.key_head) * a.keys;
  const auto row_of = [&](int r) {
    const int32_t j = at.first_key + r;
    return j < a.keys ? j : -1;
  };
  each_query_tile<T, kWidth, kTile>(
      a, tile, at,
      [&](bool found, const LaneRows& rows) {
        float s[kFragments][4], ds[kFragments][4];
        gradients_of_tile<T, kWidth, kTile, Slope::kOfProducts>(a, at, rows, true, s, ds);
        if ((a.what & kBias) != 0 && column == 0) add_key_bias<kTile>(a, at, ds);
        const bool imaginary = (a.what & kImaginary) != 0;
        scale_by_slope<kTile>(a, imaginary ? Saved::kImaginary : Saved::kReal, ds);
        if ((a.what & (kProducts | kImaginary)) != 0)
          add_queries<T, kTile>(a, ds,
                                shared_at<T>(imaginary ? a.shared.q_imag : a.shared.q) + column,
                                kRowOf<T, kWidth>, a.depth16 - column, found, sums);
        if ((a.what & kTable) != 0) {
          const int columns16 = round_up_16(a.on_key.rows.columns);
          T* const skewed = shared_at<T>(a.shared.skewed);
          sync_block();
          const bool bad = sync_block_any(load_table<T, kWidth, kTile>(a, a.on_key, at, columns16));
          store_skewed_by_key<T, kTile>(ds, skewed);
          multiply<false, true, true>(
              sums, skewed + 16 * warp() * Size::kSkewedRow, Size::kSkewedRow,
              shared_at<T>(a.shared.table) + 16 * warp() * kRowOf<T, kWidth> + column,
              kRowOf<T, kWidth>, Size::kWindow, (columns16 - column) / 8, bad);
        }
      },
      [&](GrowthOrigin origin) {
        if (a.sums_of_sweep == 0) return;
        grow_sums(sums, a, at, true, at.first_key, a.keys, column, origin);
        add_sums(sums, a.sums + at.sweep * a.sums_of_sweep, head, a.depth16, column, row_of);
        clear(sums);
      });
  if (a.sums_of_sweep == 0 && a.sums) add_sums(sums, a.sums, head, a.depth16, column, row_of);
}

template <class T, int kWidth, int kTile>
SEXTANT_KERNEL void value_gradients(const Arguments a) {
  constexpr int kFragments = Sizes<kTile>::kFragments, kOutFragments = kSumColumns<kWidth> / 8;
  const KeyTile tile = a.key_tiles[block().x];
  const int column = first_sum_column<kWidth>();
  ScoreTile at = tile_of_keys(tile, block().y);
  float sums[kOutFragments][4];
  clear(sums);
  each_query_tile<T, kWidth, kTile>(
      a, tile, at,
      [&](bool found, const LaneRows& rows) {
        float s[kFragments][4], ds[kFragments][4];
        gradients_of_tile<T, kWidth, kTile, Slope::kNone>(a, at, rows, false, s, ds);
        add_queries<T, kTile>(a, s, shared_at<T>(a.shared.d_out) + column, kRowOf<T, kWidth>,
                              a.width16 - column, found, sums);
      },
      [](GrowthOrigin) {});
  const int64_t head = (static_cast<int64_t>(at.b) * a.key_heads + at.key_head) * a.keys;
  add_sums(sums, a.sums, head, a.width16, column, [&](int r) {
    const int32_t j = at.first_key + r;
    return j < a.keys ? j : -1;
  });
}

}  // namespace sextant::cuda
