// The score equation: everything that a position encoding can do to attention is a choice of
// operands in it. d is the distance, position of query - position of key, positive for keys in the
// past; R, A, B, C, w and b are named below, as members of Score.
//
//   p = <R q, R k> + q.A[d] + k.B[d]          (or |p + i p'| with q_imag)
//   s = scale w[d] p + b[d] + beta_i[d] + c_j
//   o = sum_j e^s (v + C[d]) / (e^sink + sum_j e^s)
//
// A method chooses operands; no kernel has a name for it. No operand has a size of queries x keys
// but two: `mask`, for permutation language models and irregular padding, and `query_bias` (beta),
// for biases that depend on the query's own position or content. Callers with such biases pass the
// queries in blocks.
//
// T is float or double, and everything is computed in T or better. q, k, v, q_imag and results may
// lie in memory as bfloat16 or float16, each for itself (AnyView). Views do not own; a shared
// dimension has stride 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sextant/base/view.h"
#include "sextant/position/frame.h"
#include "sextant/position/spectrum.h"

namespace sextant {

// Rows by distance: w and b (one column), A, B and C. Clipping, bucketing and direction all live in
// the map.
template <class T>
struct Table {
  View<const T> rows = {};               // [1, 1 or query heads, R, columns]
  std::span<const int32_t> row_at = {};  // diagonal -> row; empty: row = diagonal
};

// How one side is turned. Without a rotation: as it is.
struct SideRotation {
  const Rotation* rotation = nullptr;
  // time of a row: times[b * batch_stride + axis * axis_stride + row * row_stride]
  const int64_t* rotary_positions = nullptr;
  int64_t batch_stride = 0, axis_stride = 0, row_stride = 1;
  // Added to the phase of each pair, [pairs] or empty: piecewise methods stand at a fixed phase.
  std::span<const Turns> offset = {};
  // 0: one rotation for all frames. 1: rotation[n] turns the rows of frame n, so that each text, or
  // each query, may have a spectrum of its own (dynamic stretches). Kernels see 0 only: attend()
  // hands them such frames one by one.
  int64_t frame_stride = 0;
};

// One look at the keys. A query's sweeps are disjoint and share one softmax.
struct Sweep {
  SideRotation query = {}, key = {};
  // The key rows that a query sees, clipped to its frame: runs[b * batch_stride + query row].
  const KeyRange* key_ranges = nullptr;
  int64_t batch_stride = 0;  // 0: the same for every batch entry
};

// The key rows, clipped to the frame, that `query` (a row of q) sees in this sweep.
inline KeyRange visible_keys(const Sweep& sweep, const Frame& frame, int64_t b, int64_t query) {
  const KeyRange& range = sweep.key_ranges[b * sweep.batch_stride + query];
  return {std::max(range.first, frame.key_row), std::min(range.last, frame.key_row + frame.keys)};
}

// Keys and values in pages that lie anywhere, as a cache keeps them. k and v are then [pages, key
// heads, P, columns], and row j of batch entry b is row j mod P of page at[b * batch_stride +
// floor(j / P)]. Entries may share pages. P and the key_row of every frame are multiples of
// kPageUnit, so that no vector of rows straddles two pages. For the forward pass only.
inline constexpr int64_t kPageUnit = 16;
struct Pages {
  const int64_t* at = nullptr;  // of ceil(rows / P) pages for each entry, all of which exist
  int64_t batch_stride = 0;     // 0: the same for every batch entry
  int64_t rows = 0;             // key rows that frames, runs, times and mask speak of

  explicit operator bool() const { return at != nullptr; }
};

template <class T>
struct Score {
  AnyView<const T> q;  // [batch, query heads, queries, D], dressed by the method
  // [batch, key heads, keys, D]; query head h reads key head h / (query/key heads)
  AnyView<const T> k;
  AnyView<const T> v;            // [batch, key heads, keys, Dv]
  Pages pages = {};              // where rows of k and v lie; or null: as they are counted
  AnyView<const T> q_imag = {};  // q', of the shape of q; or null
  double scale = 1;
  std::vector<Frame> frames = {};  // a query row in no frame sees nothing; none lies in two
  std::vector<Sweep> sweeps = {};
  Diagonals diagonals = {};             // covers every distance seen, if there is any table
  Table<T> weight = {}, bias = {};      // w, b: [1, heads, R, 1]
  Table<T> on_query = {}, on_key = {};  // A, B: columns <= D, meeting the first columns of q and k
  Table<T> on_value = {};               // C: Dv columns
  View<const T> query_bias = {};        // beta: [batch, query heads, queries, diagonals], or null
  // c: [batch, query heads, key rows, 1], or null. Sums over thousands of keys, of which only
  // differences matter, lie here: hence double, and hence key_bias.h, which takes them relative to
  // one key of the query.
  View<const double> key_bias = {};
  std::span<const T> sink = {};  // one more score per query head, in the denominator only; or empty
  View<const uint8_t> mask = {};  // [batch, heads, queries, keys], 0 = hidden; or null
};

template <class T>
int64_t key_rows(const Score<T>& score) {
  return score.pages ? score.pages.rows : score.k.rows;
}

// Where row `row` of k and v of a batch entry lies: the entry and the row of the views.
struct StoredRow {
  int64_t batch = 0, row = 0;
};
template <class T>
StoredRow stored_row(const Score<T>& score, int64_t b, int64_t row) {
  if (!score.pages) return {b, row};
  const int64_t page_rows = score.k.rows;
  return {score.pages.at[b * score.pages.batch_stride + row / page_rows], row % page_rows};
}

// Results of a forward pass. A query that sees no key (and no sink) gives zeros and lse =
// -infinity. With a key_bias, lse is less by the bias of the query's last key (key_bias.h).
template <class T>
struct Attended {
  AnyView<T> out;  // [batch, query heads, queries, Dv]
  View<T> lse;     // [batch, query heads, queries, 1]: log of the sum of exp(s_ij), sink included
};

// Gradients, each of the shape of its operand; a null view is not computed. They are overwritten,
// not added to. Gradients of a shared operand are summed over what shares it.
template <class T>
struct ScoreGrad {
  View<T> q = {}, k = {}, v = {}, q_imag = {};
  View<T> weight = {}, bias = {}, on_query = {}, on_key = {}, on_value = {};
  View<T> query_bias = {};  // by batch entry and head, whatever its operand shares
  View<T> key_bias = {};    // likewise
  std::span<T> sink = {};
};

}  // namespace sextant
