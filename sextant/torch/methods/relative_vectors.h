// What Transformer-XL, XLNet and TENER share: two trained vectors u and v per head beside the query, and
// rows by distance that are computed and not trained.
//
//   (q_i + u).k_j + (q_i + v).A[d]  =  q'_i.k_j + q'_i.A[d] + (v - u).A[d],   q' = q + u
//
// Three operands say the right side: a dressed query, rows by distance, a number by distance. Nothing
// of queries x keys appears, and autograd finds u and v through all three.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sextant/position/frame.h"
#include "sextant/position/sinusoid.h"
#include "sextant/torch/operands.h"

namespace sextant {

// The distances that `diagonals` meet once they are clipped to [low, high], each once, and the row of
// each diagonal; undefined where nothing is clipped and row = diagonal.
struct ClippedDistances {
  std::vector<int64_t> of_row = {};
  at::Tensor row_at = {};
};
ClippedDistances clipped_distances(const Diagonals& diagonals, int64_t low, int64_t high);

// The sinusoid at sign * distance, as rows [rows, width] of the type of `like`.
at::Tensor sinusoids(const Sinusoid& sinusoid, const std::vector<int64_t>& distances, int64_t sign,
                     const at::Tensor& like);

// u, v: [heads, head_dim]; table.rows: [1 or heads, R, head_dim]. Reads operands.scale, since a bias is
// added to the score after scaling: set it before.
void place_with_biases(Operands& operands, const TableOperand& table, const at::Tensor& u,
                       const at::Tensor& v);

}  // namespace sextant
