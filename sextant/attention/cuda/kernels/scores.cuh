// The scores of a tile of queries and keys, and their derivatives by the products, for all kernels
// that walk over tiles.
//
// Tables by distance meet a tile in kTile + kTile - 1 diagonals. Row r of a tile of a table is that
// of diagonal `corner` - (kTile - 1) + r, where `corner` is the diagonal of the tile's first query
// and key. Element (i, j) of a tile has r = j - i + kTile - 1, so the product of 16 queries with
// a window of the table holds their scores in skewed rows.
#pragma once

#include "sextant/attention/cuda/kernels/axis_terms.cuh"
#include "sextant/attention/cuda/kernels/dropout.cuh"
#include "sextant/attention/cuda/kernels/tile.cuh"

namespace sextant::cuda {

// A tile of queries and keys of one head.
struct ScoreTile {
  int32_t b = 0, h = 0, key_head = 0, sweep = 0;
  const FrameRows* frame = nullptr;
  int32_t first_query = 0, first_key = 0;  // rows of q and k

  SEXTANT_DEVICE int32_t last_query() const { return frame->query_row + frame->queries; }
  SEXTANT_DEVICE int64_t corner() const {
    return frame->diagonal + (first_key - frame->key_row) - (first_query - frame->query_row);
  }
};

// The two rows of queries of a lane.
struct LaneRows {
  Visible visible[2];
  float lse[2], mean[2];
  double origin[2];
};

template <int kTile>
struct Sizes {
  static constexpr int kWarps = kTile / 16, kFragments = kTile / 8, kDiagonals = 2 * kTile;
  static constexpr int kWindow = kTile + 16;  // the diagonals of 16 queries or keys
  static constexpr int kSkewRow = kWindow + 4;
  static constexpr int kWeightsRow = kTile + 8, kSkewedRow = kWindow + 8;
};

SEXTANT_DEVICE int round_up_16(int x) { return (x + 15) / 16 * 16; }
SEXTANT_DEVICE int warp() { return thread() / 32; }

// The row of q, counted from the tile's first, of element e of a lane.
SEXTANT_DEVICE int tile_row(int e) { return 16 * warp() + lane_row(e); }

SEXTANT_DEVICE LaneRows lane_rows(const Arguments& a, const ScoreTile& at) {
  LaneRows rows;
  for (int n = 0; n < 2; ++n) {
    const int32_t i = at.first_query + tile_row(2 * n);
    const int64_t index = query_index(a, at.b, at.h, i);
    const bool inside = i < at.last_query();
    rows.visible[n] =
        inside ? a.visible[(static_cast<int64_t>(at.sweep) * a.batch + at.b) * a.queries + i]
               : Visible{};
    rows.origin[n] = inside && a.origins ? a.origins[index] : 0;
    rows.lse[n] = inside && a.means ? lse_at(a, at.b, at.h, i) : 0;
    rows.mean[n] = inside && a.means ? a.means[index] : 0;
  }
  return rows;
}

// Multiplies the rows of a tile by their growth, counted from the position of a row of the other
// side or of their own: queries by e^(growth (t - from)), keys by e^(growth (from - t)).
template <class T>
SEXTANT_DEVICE void grow(T* tile, int row, int rows, const Arguments& a, const SweepRows& sweep,
                         int b, bool keys, int32_t first, int32_t last, const Positions& from,
                         int32_t from_row) {
  const Positions& own = keys ? sweep.key_positions : sweep.query_positions;
  for (int n = thread(); n < rows * a.depth; n += threads()) {
    const int r = n / a.depth, c = n % a.depth;
    const Channel& channel = sweep.growth[c];
    if (channel.growth == 0 || first + r < 0 || first + r >= last) continue;
    const auto time = [&](const Positions& times, int64_t at) {
      return times.at[b * times.batch_stride + channel.axis * times.rows + at];
    };
    const int64_t apart = time(own, first + r) - time(from, from_row);
    const double exponent = channel.growth * static_cast<double>(keys ? -apart : apart);
    tile[r * row + c] = narrow<T>(to_float(tile[r * row + c]) * static_cast<float>(exp(exponent)));
  }
}

// The row from whose position growth is counted: the middle one of a tile.
struct GrowthOrigin {
  bool of_keys = false;
  int32_t row = 0;
};
SEXTANT_DEVICE GrowthOrigin middle_of_queries(const ScoreTile& at, int tile) {
  const int32_t middle = at.first_query + tile / 2, last = at.last_query() - 1;
  return {false, middle < last ? middle : last};
}

// Loads the tile of queries of a sweep. Returns whether this thread met an infinity or NaN.
template <class T, int kWidth, int kTile>
SEXTANT_DEVICE bool load_queries(const Arguments& a, const ScoreTile& at, GrowthOrigin origin) {
  const SweepRows& sweep = a.sweep[at.sweep];
  const SharedTiles& to = a.shared;
  const auto row_of = [&](int r) {
    const int32_t i = at.first_query + r;
    return i < at.last_query() ? i : -1;
  };
  const Positions& from = origin.of_keys ? sweep.key_positions : sweep.query_positions;
  bool found = load_rows(shared_at<T>(to.q), kRowOf<T, kWidth>, kTile, a.depth16, sweep.q, at.b,
                         at.h, row_of);
  if (to.q_imag >= 0)
    found |= load_rows(shared_at<T>(to.q_imag), kRowOf<T, kWidth>, kTile, a.depth16, sweep.q_imag,
                       at.b, at.h, row_of);
  if (to.q_raw >= 0 && to.q_raw != to.q)
    found |= load_rows(shared_at<T>(to.q_raw), kRowOf<T, kWidth>, kTile,
                       round_up_16(a.q_raw.columns), a.q_raw, at.b, at.h, row_of);
  if (sweep.growth) {
    sync_block();
    for (const int32_t tile : {to.q, to.q_imag})
      if (tile >= 0)
        grow(shared_at<T>(tile), kRowOf<T, kWidth>, kTile, a, sweep, at.b, false, at.first_query,
             at.last_query(), from, origin.row);
  }
  return found;
}

template <class T, int kWidth, int kTile>
SEXTANT_DEVICE bool load_d_out(const Arguments& a, const ScoreTile& at) {
  return load_rows(shared_at<T>(a.shared.d_out), kRowOf<T, kWidth>, kTile, a.width16, a.d_out, at.b,
                   at.h, [&](int r) {
                     const int32_t i = at.first_query + r;
                     return i < at.last_query() ? i : -1;
                   });
}

// Loads the tiles of keys and values. The results say which thread met an infinity or NaN.
struct FoundInKeys {
  bool keys = false, values = false;
};
template <class T, int kWidth, int kTile>
SEXTANT_DEVICE FoundInKeys load_keys(const Arguments& a, const ScoreTile& at, GrowthOrigin origin) {
  const SweepRows& sweep = a.sweep[at.sweep];
  const SharedTiles& to = a.shared;
  const int32_t first = at.frame->key_row, last = first + at.frame->keys;
  const auto row_of = [&](int r) {
    const int32_t j = at.first_key + r;
    return j >= first && j < last ? j : -1;
  };
  FoundInKeys found;
  found.keys = load_rows(shared_at<T>(to.k), kRowOf<T, kWidth>, kTile, a.depth16, sweep.k, at.b,
                         at.key_head, row_of);
  if (to.k_raw >= 0 && to.k_raw != to.k)
    found.keys |= load_rows(shared_at<T>(to.k_raw), kRowOf<T, kWidth>, kTile, a.depth16, a.k_raw,
                            at.b, at.key_head, row_of);
  if (to.v >= 0)
    found.values = load_rows(shared_at<T>(to.v), kRowOf<T, kWidth>, kTile, a.width16, a.v, at.b,
                             at.key_head, row_of);
  if (sweep.growth) {
    sync_block();
    const Positions& from = origin.of_keys ? sweep.key_positions : sweep.query_positions;
    grow(shared_at<T>(to.k), kRowOf<T, kWidth>, kTile, a, sweep, at.b, true, at.first_key, last,
         from, origin.row);
  }
  return found;
}

// The row of a table at a diagonal, or -1 outside the table.
SEXTANT_DEVICE int64_t table_row(const Arguments& a, const TableRows& table, int64_t diagonal) {
  if (diagonal < 0 || diagonal >= a.diagonals) return -1;
  return table.row_at ? table.row_at[diagonal] : diagonal;
}

// Loads the rows of a table that meet a tile.
template <class T, int kWidth, int kTile>
SEXTANT_DEVICE bool load_table(const Arguments& a, const TableRows& table, const ScoreTile& at,
                               int columns16) {
  const int64_t first = at.corner() - (kTile - 1);
  return load_rows(shared_at<T>(a.shared.table), kRowOf<T, kWidth>, Sizes<kTile>::kDiagonals,
                   columns16, table.rows, 0, at.h,
                   [&](int r) { return table_row(a, table, first + r); });
}

// Loads w and b by diagonal: [2][kDiagonals] floats.
template <int kTile>
SEXTANT_DEVICE void load_by_diagonal(const Arguments& a, const ScoreTile& at) {
  if (a.shared.by_diagonal < 0) return;
  constexpr int kDiagonals = Sizes<kTile>::kDiagonals;
  float* const to = shared_at<float>(a.shared.by_diagonal);
  const int64_t first = at.corner() - (kTile - 1);
  for (int n = thread(); n < 2 * kDiagonals; n += threads()) {
    const TableRows& table = n < kDiagonals ? a.weight : a.bias;
    const int64_t row = table.rows ? table_row(a, table, first + n % kDiagonals) : -1;
    to[n] = row < 0 ? 0.0F : element(table.rows, place_of(table.rows, 0, at.h, row, 0));
  }
}

// Adds q . A, or r . A, to products. The block's q_raw is loaded, and by all threads.
template <class T, int kWidth, int kTile, int kFragments>
SEXTANT_DEVICE void add_on_rows(const Arguments& a, const TableRows& table, const ScoreTile& at,
                                const T* rows, int row, int columns16, float (&s)[kFragments][4]) {
  using Size = Sizes<kTile>;
  sync_block();
  load_table<T, kWidth, kTile>(a, table, at, columns16);
  sync_block();
  float* const skew = shared_at<float>(a.shared.skew) + 16 * warp() * Size::kSkewRow;
  multiply_to(skew, Size::kSkewRow, rows + 16 * warp() * row, row,
              shared_at<T>(a.shared.table) + (kTile - 16 - 16 * warp()) * kRowOf<T, kWidth>,
              kRowOf<T, kWidth>, columns16, Size::kWindow / 8);
  sync_warp();
  each_element<kFragments>([&](int n, int e) {
    s[n][e] += skew[lane_row(e) * Size::kSkewRow + 8 * n + lane_column(e) - lane_row(e) + 15];
  });
}

// Adds k . B to products.
template <class T, int kWidth, int kTile, int kFragments>
SEXTANT_DEVICE void add_on_keys(const Arguments& a, const ScoreTile& at,
                                float (&s)[kFragments][4]) {
  using Size = Sizes<kTile>;
  const int columns16 = round_up_16(a.on_key.rows.columns);
  sync_block();
  load_table<T, kWidth, kTile>(a, a.on_key, at, columns16);
  sync_block();
  float* const skew = shared_at<float>(a.shared.skew);
  multiply_to(skew + 16 * warp() * Size::kSkewRow, Size::kSkewRow,
              shared_at<T>(a.shared.k_raw) + 16 * warp() * kRowOf<T, kWidth>, kRowOf<T, kWidth>,
              shared_at<T>(a.shared.table) + 16 * warp() * kRowOf<T, kWidth>, kRowOf<T, kWidth>,
              columns16, Size::kWindow / 8);
  sync_block();
  each_element<kFragments>([&](int n, int e) {
    const int j = 8 * n + lane_column(e);
    s[n][e] += skew[j * Size::kSkewRow + j % 16 - tile_row(e) + kTile - 1];
  });
  sync_block();  // the buffer is written again
}

// A bit for each element of a lane, (n, e) at 4 n + e, from a function of queries and keys. Loops
// over elements that are not unrolled keep kernels small where there is much to do for each.
template <int kFragments, class F>
SEXTANT_DEVICE uint32_t bits_of(const ScoreTile& at, const F& f) {
  static_assert(kFragments * 4 <= 32);
  uint32_t bits = 0;
  SEXTANT_ROLL
  for (int n = 0; n < 4 * kFragments; ++n) {
    const int32_t i = at.first_query + tile_row(n % 4);
    const int32_t j = at.first_key + 8 * (n / 4) + lane_column(n % 4);
    bits |= static_cast<uint32_t>(f(n % 4 / 2, i, j)) << n;
  }
  return bits;
}
template <int kFragments>
SEXTANT_DEVICE uint32_t visible_bits(const Arguments& a, const ScoreTile& at,
                                     const LaneRows& rows) {
  const Visible low = rows.visible[0], high = rows.visible[1];
  const int32_t last = at.first_key + 8 * kFragments;
  if (!a.mask && low.first <= at.first_key && last <= low.last && high.first <= at.first_key &&
      last <= high.last)
    return ~0U;
  return bits_of<kFragments>(at, [&](int half, int32_t i, int32_t j) {
    const Visible seen = half == 0 ? low : high;
    return j >= seen.first && j < seen.last &&
           (!a.mask ||
            static_cast<const uint8_t*>(a.mask.data)[place_of(a.mask, at.b, at.h, i, j)] != 0);
  });
}
// Without dropout all are kept.
template <int kFragments>
SEXTANT_DEVICE uint32_t kept_bits(const Arguments& a, const ScoreTile& at) {
  if (a.dropout.on == 0) return ~0U;
  return bits_of<kFragments>(
      at, [&](int, int32_t i, int32_t j) { return keeps(a.dropout, at.b, at.h, i, j); });
}
SEXTANT_DEVICE bool has_bit(uint32_t bits, int n, int e) { return (bits >> (4 * n + e) & 1U) != 0; }

// The numbers that a thread saves for its own elements in shared memory, where loops over them need
// not be unrolled and take no registers: p, then the derivatives of scores by the two parts of p,
// or by w; and r . A, then the score.
enum class Saved : int32_t { kReal, kImaginary, kScore };
template <int kTile>
SEXTANT_DEVICE float& saved_at(const Arguments& a, Saved saved, int element) {
  return shared_at<float>(a.shared.saved)[static_cast<int>(saved) * kTile * kTile +
                                          warp() * 16 * kTile + 32 * element + thread() % 32];
}

enum class Slope { kNone, kOfProducts, kOfWeight };

// Turns the products that a thread has saved into scores, -infinity where a key is hidden, for
// calls with more terms than a scale and a bias by distance, and products into derivatives.
template <int kTile, Slope kSlope, int kFragments>
SEXTANT_DEVICE void finish_scores(const Arguments& a, const ScoreTile& at, const LaneRows& rows,
                                  uint32_t visible, float (&s)[kFragments][4]) {
  const float* const by_diagonal = shared_at<float>(a.shared.by_diagonal);
  const bool complex = a.shared.q_imag >= 0;
  const double origins[2] = {rows.origin[0], rows.origin[1]};
  each_element<kFragments>(
      [&](int n, int e) { saved_at<kTile>(a, Saved::kReal, 4 * n + e) = s[n][e]; });
  SEXTANT_ROLL
  for (int n = 0; n < 4 * kFragments; ++n) {
    const int il = tile_row(n % 4), jl = 8 * (n / 4) + lane_column(n % 4);
    const int32_t i = at.first_query + il, j = at.first_key + jl;
    const int r = jl - il + kTile - 1;
    float& real = saved_at<kTile>(a, Saved::kReal, n);
    float& imaginary = saved_at<kTile>(a, Saved::kImaginary, n);
    float& saved_score = saved_at<kTile>(a, Saved::kScore, n);
    const bool seen = (visible >> n & 1U) != 0;
    const AxisTerms axes = seen && a.axes ? axis_terms(a, at.b, at.h, i, j) : AxisTerms{};
    const float p = a.table_query ? real : real + axes.product;
    const float of_r = a.table_query ? (a.on_query.rows ? saved_score : 0.0F) + axes.product : 0.0F;
    const float size = complex ? hypotf(p, imaginary) : p;
    const float weight = a.weight.rows ? by_diagonal[r] : 1.0F;
    float capped = a.scale * weight * size, slope = 1;
    if (a.softcap > 0) {
      const float t = tanhf(capped / a.softcap);
      capped = a.softcap * t;
      slope = (1 - t) * (1 + t);
    }
    float score = -INFINITY;
    if (seen) {
      score = capped + (a.bias.rows ? by_diagonal[Sizes<kTile>::kDiagonals + r] : 0.0F) +
              axes.bias + of_r;
      if (a.query_bias)
        score += static_cast<const float*>(
            a.query_bias.data)[place_of(a.query_bias, at.b, at.h, i, at.corner() + jl - il)];
      if (a.key_bias)
        score += static_cast<float>(
            static_cast<const double*>(a.key_bias.data)[place_of(a.key_bias, at.b, at.h, j, 0)] -
            (n % 4 / 2 == 0 ? origins[0] : origins[1]));
    }
    saved_score = score;
    if constexpr (kSlope == Slope::kOfWeight) real = slope * a.scale * size;
    if constexpr (kSlope == Slope::kOfProducts) {
      const float factor = slope * a.scale * weight;
      const float ratio = size == 0 ? 0.0F : factor / size;
      real = complex ? ratio * p : factor;
      if (complex) imaginary = ratio * imaginary;
    }
  }
  each_element<kFragments>(
      [&](int n, int e) { s[n][e] = saved_at<kTile>(a, Saved::kScore, 4 * n + e); });
}

// The scores of a warp's 16 queries with the tile's keys, -infinity where a key is hidden. Tiles
// and by_diagonal are loaded, and the block has been synchronised. The derivatives by the parts of
// p, or by w, are those of slope_at().
template <class T, int kWidth, int kTile, Slope kSlope, int kFragments>
SEXTANT_DEVICE void score_tile(const Arguments& a, const ScoreTile& at, const LaneRows& rows,
                               float (&s)[kFragments][4]) {
  constexpr int kRow = kRowOf<T, kWidth>;
  const T* const k = shared_at<T>(a.shared.k);
  const int own = 16 * warp() * kRow;
  if (a.shared.q_imag >= 0) {
    clear(s);
    multiply<false, false>(s, shared_at<T>(a.shared.q_imag) + own, kRow, k, kRow, a.depth16,
                           kFragments);
    each_element<kFragments>(
        [&](int n, int e) { saved_at<kTile>(a, Saved::kImaginary, 4 * n + e) = s[n][e]; });
  }
  clear(s);
  if (a.on_query.rows) {
    add_on_rows<T, kWidth, kTile>(a, a.on_query, at, shared_at<T>(a.shared.q_raw), kRow,
                                  round_up_16(a.on_query.rows.columns), s);
    if (a.table_query) {
      each_element<kFragments>(
          [&](int n, int e) { saved_at<kTile>(a, Saved::kScore, 4 * n + e) = s[n][e]; });
      clear(s);
    }
  }
  multiply<false, false>(s, shared_at<T>(a.shared.q) + own, kRow, k, kRow, a.depth16, kFragments);
  if (a.on_key.rows) add_on_keys<T, kWidth, kTile>(a, at, s);
  const uint32_t visible = visible_bits<kFragments>(a, at, rows);
  if (a.shared.saved >= 0) {
    finish_scores<kTile, kSlope>(a, at, rows, visible, s);
    return;
  }
  const float* const bias = shared_at<float>(a.shared.by_diagonal) + Sizes<kTile>::kDiagonals;
  each_element<kFragments>([&](int n, int e) {
    const int r = 8 * n + lane_column(e) - tile_row(e) + kTile - 1;
    const float score = a.scale * s[n][e] + (a.bias.rows ? bias[r] : 0.0F);
    s[n][e] = has_bit(visible, n, e) ? score : -INFINITY;
  });
}

// The derivative of an element's score, as score_tile() has left it.
template <int kTile>
SEXTANT_DEVICE float slope_at(const Arguments& a, Saved saved, int n, int e) {
  return a.shared.saved >= 0 ? saved_at<kTile>(a, saved, 4 * n + e) : a.scale;
}

}  // namespace sextant::cuda
