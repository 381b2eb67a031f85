// What Transformer-XL, XLNet and TENER share: two trained vectors u and v per head beside the
// query, and rows by distance that are computed and not trained.
//
//   (q_i + u).k_j + (q_i + v).A[d]  =  q'_i.k_j + q'_i.A[d] + (v - u).A[d],   q' = q + u
//
// Three operands say the right side: a dressed query, rows by distance, a number by distance.
// Nothing of queries x keys appears, and autograd finds u and v through all three.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <mutex>

#include "sextant/position/frame.h"
#include "sextant/position/sinusoid.h"
#include "sextant/torch/operands.h"

namespace sextant {

// The distances that `diagonals` meet once they are clipped to [low, high], each once: farthest,
// farthest - 1, ..., count of them; and the row of each diagonal, undefined where nothing is
// clipped and row = diagonal.
struct ClippedDistances {
  int64_t farthest = 0, count = 0;
  at::Tensor row_at = {};
};
ClippedDistances clipped_distances(const Diagonals& diagonals, int64_t low, int64_t high);

// Rows of a sinusoid by distance. The last ones asked for are kept, one table for each sign: the
// layers of a model ask for the same. Safe to call from several threads.
class SinusoidTable {
 public:
  explicit SinusoidTable(const SinusoidOptions& options) : sinusoid_(options) {}

  // The sinusoid at sign (1 or -1) times each distance: [distances, width], of the type of `like`.
  at::Tensor rows(const ClippedDistances& distances, int64_t sign, const at::Tensor& like) const;

 private:
  struct Kept {
    int64_t farthest = 0;
    at::Tensor rows = {};
  };

  Sinusoid sinusoid_;
  mutable std::mutex mutex_;
  mutable std::array<Kept, 2> kept_;  // for sign 1, for sign -1
};

// u, v: [heads, head_dim]; table.rows: [1 or heads, R, head_dim]. Reads operands.scale, since a
// bias is added to the score after scaling: set it before.
void place_with_biases(Operands& operands, const TableOperand& table, const at::Tensor& u,
                       const at::Tensor& v);

}  // namespace sextant
