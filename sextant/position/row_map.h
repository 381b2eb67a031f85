// Maps from distances to table rows, as integer arrays that kernels index by diagonal.
//
// Published methods count rows in two directions and treat distances outside their tables in three
// ways. All of these variants are handled here; a kernel only sees a map from diagonal to row. With
// K a clip and M a length:
//
//   method                      row                      as LinearRows
//   Shaw, NEZHA                 clip(j - i, -K, K) + K   {2K + 1, K, kKeyMinusQuery, kClip}
//   DeBERTa v1                  clip(i - j + K, 0, 2K-1) {2K, K, kQueryMinusKey, kClip}
//   Transformer-XL, clamp_len   min(i - j, K)            {K + 1, 0, kQueryMinusKey, kClip}
//   BERT relative_key           i - j + M - 1            {2M - 1, M - 1, kQueryMinusKey, kRefuse}
//   tensor2tensor v2            j - i + M - 1, or zeros  {2M - 1, M - 1, kKeyMinusQuery, kZero}
//   tensor2tensor v2, causal    the same                 {M, M - 1, kKeyMinusQuery, kZero}
#pragma once

#include <cstdint>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/position/buckets.h"
#include "sextant/position/frame.h"

namespace sextant {

// The direction in which rows count, for query position i and key position j.
enum class RowOrder {
  kKeyMinusQuery,  // j - i: later keys have later rows, as with diagonals
  kQueryMinusKey,  // i - j, the sign of Sextant's distances
};

// The row of a distance outside the table.
enum class Outside {
  kClip,    // the nearest row
  kZero,    // row `rows`: an additional row of zeros, which the table must include
  kRefuse,  // throws Error
};

// A table with one row for each distance of a range.
struct LinearRows {
  int64_t rows = 0;
  int64_t zero_distance = 0;  // the row of distance 0, in [0, rows)
  RowOrder order = RowOrder::kKeyMinusQuery;
  Outside outside = Outside::kClip;
};

// Each returns [diagonals.count]: the row of each diagonal. Throws Error if a row does not fit an
// int32, if diagonals.count is negative, or if a distance has no row.
SEXTANT_API std::vector<int32_t> row_map(const Diagonals& diagonals, const LinearRows& rows);
SEXTANT_API std::vector<int32_t> row_map(const Diagonals& diagonals, const T5Buckets& buckets);
SEXTANT_API std::vector<int32_t> row_map(const Diagonals& diagonals, const DebertaBuckets& buckets);

// Rows for distances -clip .. clip; other distances are clipped.
SEXTANT_API std::vector<int32_t> clipped_row_map(const Diagonals& diagonals, int64_t clip,
                                                 RowOrder order);

}  // namespace sextant
