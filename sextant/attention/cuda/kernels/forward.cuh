// The forward pass: a block owns a tile of queries of one head and walks over the tiles of keys
// that they see, sweep after sweep, with an online softmax (Milakov and Gimelshein 2018,
// arXiv 1805.02867). The walk depends on the queries' own keys alone, so a query has the same bits
// whatever else is in the call.
#pragma once

#include "sextant/attention/cuda/kernels/scores.cuh"

namespace sextant::cuda {

// The softmax of a lane's two rows of queries so far.
struct RunningSoftmax {
  float most[2], total[2];
};

// Turns scores into weights relative to the largest score so far, and rescales what was summed
// before.
template <int kFragments, int kOutFragments>
SEXTANT_DEVICE void take_weights(float (&s)[kFragments][4], RunningSoftmax& softmax,
                                 float (&out)[kOutFragments][4]) {
  SEXTANT_UNROLL
  for (int half = 0; half < 2; ++half) {
    float most = softmax.most[half];
    SEXTANT_UNROLL
    for (int n = 0; n < kFragments; ++n)
      most = fmaxf(most, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    most = most_of_row(most);
    const float origin = most == -INFINITY ? 0.0F : most;
    const float rescale = expf(softmax.most[half] - origin);
    softmax.most[half] = most;
    float sums[2] = {};  // of each of the lane's columns
    each_element<kFragments>([&](int n, int e) {
      if (e / 2 != half) return;
      s[n][e] = expf(s[n][e] - origin);
      sums[e % 2] += s[n][e];
    });
    const float sum = sum_of_row(sums[0] + sums[1]);
    softmax.total[half] = softmax.total[half] * rescale + sum;
    SEXTANT_UNROLL
    for (int n = 0; n < kOutFragments; ++n) {
      out[n][2 * half] *= rescale;
      out[n][2 * half + 1] *= rescale;
    }
  }
}

// Writes elements of a warp's rows to a tile [kTile][kWeightsRow].
template <class T, int kTile, int kFragments>
SEXTANT_DEVICE void store_weights(const float (&s)[kFragments][4], T* to) {
  each_element<kFragments>([&](int n, int e) {
    to[tile_row(e) * Sizes<kTile>::kWeightsRow + 8 * n + lane_column(e)] = narrow<T>(s[n][e]);
  });
}

// Writes them to this warp's part of a tile [kTile][kSkewedRow] by diagonal, beside zeros.
template <class T, int kTile, int kFragments>
SEXTANT_DEVICE void store_skewed(const float (&s)[kFragments][4], T* to) {
  using Size = Sizes<kTile>;
  T* const own = to + 16 * warp() * Size::kSkewedRow;
  for (int n = thread() % 32; n < 16 * Size::kWindow; n += 32)
    own[n / Size::kWindow * Size::kSkewedRow + n % Size::kWindow] = narrow<T>(0);
  sync_warp();
  each_element<kFragments>([&](int n, int e) {
    own[lane_row(e) * Size::kSkewedRow + 8 * n + lane_column(e) - lane_row(e) + 15] =
        narrow<T>(s[n][e]);
  });
  sync_warp();
}

// Adds the products of weights by diagonal with the rows of a table, from a column on: for each
// query of the warp, the sum over keys of weight * table[d]. All threads call it.
template <class T, int kWidth, int kTile, int kFragments, int kOutFragments>
SEXTANT_DEVICE void add_table_rows(const Arguments& a, const TableRows& table, const ScoreTile& at,
                                   int columns16, int first_column, const float (&s)[kFragments][4],
                                   float (&out)[kOutFragments][4]) {
  using Size = Sizes<kTile>;
  sync_block();
  const bool found = sync_block_any(load_table<T, kWidth, kTile>(a, table, at, columns16));
  T* const skewed = shared_at<T>(a.shared.skewed);
  store_skewed<T, kTile>(s, skewed);
  multiply<false, true, true>(
      out, skewed + 16 * warp() * Size::kSkewedRow, Size::kSkewedRow,
      shared_at<T>(a.shared.table) + (kTile - 16 - 16 * warp()) * kRowOf<T, kWidth> + first_column,
      kRowOf<T, kWidth>, Size::kWindow, (columns16 - first_column) / 8, found);
  sync_warp();
}

template <int kFragments>
SEXTANT_DEVICE void drop(const Arguments& a, const ScoreTile& at, float (&s)[kFragments][4]) {
  if (a.dropout.on == 0) return;
  const uint32_t kept = kept_bits<kFragments>(a, at);
  each_element<kFragments>(
      [&](int n, int e) { s[n][e] *= has_bit(kept, n, e) ? a.dropout.kept_factor : 0.0F; });
}

SEXTANT_DEVICE ScoreTile tile_of_queries(const Arguments& a, int64_t item, int32_t h) {
  const QueryTile tile = a.query_tiles[item];
  ScoreTile at;
  at.b = tile.batch, at.h = h, at.key_head = h / a.group;
  at.frame = a.frames + tile.frame;
  at.first_query = tile.first_query;
  return at;
}

// Calls f(found, lane's rows) for each tile of keys that the queries see, sweep after sweep, with
// tiles loaded; `found`: whether keys, or values, have an infinity or NaN. done(origin of growth)
// is called behind each sweep.
template <class T, int kWidth, int kTile, class F, class Done>
SEXTANT_DEVICE void each_key_tile(const Arguments& a, int32_t item, ScoreTile& at,
                                  bool FoundInKeys::*found, F&& f, Done&& done) {
  const GrowthOrigin origin = middle_of_queries(at, kTile);
  for (at.sweep = 0; at.sweep < a.sweeps; ++at.sweep) {
    const KeySpan span = a.spans[item * a.sweeps + at.sweep];
    if (span.first < span.last) {
      sync_block();
      load_queries<T, kWidth, kTile>(a, at, origin);
      const LaneRows rows = lane_rows(a, at);
      for (at.first_key = span.first; at.first_key < span.last; at.first_key += kTile) {
        sync_block();
        load_by_diagonal<kTile>(a, at);
        f(sync_block_any(load_keys<T, kWidth, kTile>(a, at, origin).*found), rows);
      }
    }
    done(origin);
  }
}

// Adds a tile of weights, times a tile of rows of keys.
template <class T, int kTile, int kFragments, int kOutFragments>
SEXTANT_DEVICE void add_keys(const Arguments& a, const float (&s)[kFragments][4], const T* rows,
                             int row, int columns16, bool found, float (&out)[kOutFragments][4]) {
  constexpr int kRow = Sizes<kTile>::kWeightsRow;
  T* const weights = shared_at<T>(a.shared.weights);
  sync_warp();
  store_weights<T, kTile>(s, weights);
  sync_warp();
  multiply<false, true>(out, weights + 16 * warp() * kRow, kRow, rows, row, kTile, columns16 / 8,
                        found);
}

// Writes a lane's elements of one row, times a factor.
template <class Element, int kOutFragments>
SEXTANT_DEVICE void write_row(const Arguments& a, int64_t row, int half, float factor,
                              const float (&out)[kOutFragments][4]) {
  each_element<kOutFragments>([&](int n, int e) {
    if (e >= 2) return;

    const int c = 8 * n + lane_column(e);
    if (c < a.width)
      static_cast<Element*>(a.out.data)[row + c * a.out.column_stride] =
          narrow<Element>(out[n][2 * half + e] * factor);
  });
}

template <class T, int kWidth, int kTile>
SEXTANT_KERNEL void forward(const Arguments a) {
  constexpr int kFragments = Sizes<kTile>::kFragments, kOutFragments = kWidth / 8;
  const int32_t item = block().x;
  ScoreTile at = tile_of_queries(a, item, block().y);
  float out[kOutFragments][4];
  clear(out);
  RunningSoftmax softmax;
  for (int half = 0; half < 2; ++half) {
    const int32_t i = at.first_query + tile_row(2 * half);
    const bool sink = (a.sink || a.query_sink) && i < at.last_query();
    const double origin = sink && a.origins ? a.origins[query_index(a, at.b, at.h, i)] : 0;
    softmax.most[half] = sink ? static_cast<float>(sink_of(a, at.b, at.h, i) - origin) : -INFINITY;
    softmax.total[half] = softmax.most[half] == -INFINITY ? 0.0F : 1.0F;
  }
  each_key_tile<T, kWidth, kTile>(
      a, item, at, &FoundInKeys::values,
      [&](bool found, const LaneRows& rows) {
        float s[kFragments][4];
        score_tile<T, kWidth, kTile, Slope::kNone>(a, at, rows, s);
        take_weights(s, softmax, out);
        drop(a, at, s);
        add_keys<T, kTile>(a, s, shared_at<T>(a.shared.v), kRowOf<T, kWidth>, a.width16, found,
                           out);
        if (a.on_value.rows)
          add_table_rows<T, kWidth, kTile>(a, a.on_value, at, a.width16, 0, s, out);
      },
      [](GrowthOrigin) {});
  SEXTANT_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int32_t i = at.first_query + tile_row(2 * half);
    if (i >= at.last_query()) continue;
    const float total = softmax.total[half];
    const float factor = total == 0 ? 0.0F : 1 / total;
    if (thread() % 4 == 0)
      lse_at(a, at.b, at.h, i) = total == 0 ? -INFINITY : softmax.most[half] + logf(total);
    const int64_t row = place_of(a.out, at.b, at.h, i, 0);
    if (a.out.type == Stored::kBfloat16)
      write_row<Bf16>(a, row, half, factor, out);
    else if (a.out.type == Stored::kFloat16)
      write_row<Fp16>(a, row, half, factor, out);
    else
      write_row<float>(a, row, half, factor, out);
  }
}

}  // namespace sextant::cuda
