// Two trained vectors u and v per head that are added to the query, and a fixed sinusoid of the
// distance: shared by Transformer-XL, XLNet and TENER.
//
//   (q_i + u).k_j + (q_i + v).A[d]  =  q'_i.k_j + q'_i.A[d] + (v - u).A[d],   q' = q + u
//
// The right side takes three operands: the query q', the rows A[d] by distance, and a bias by
// distance, (v - u).A[d]. Nothing has the size queries x keys, and autograd computes the gradients
// of u and v through all three.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <mutex>

#include "sextant/position/frame.h"
#include "sextant/position/sinusoid.h"
#include "sextant/torch/operands.h"

namespace sextant {

// The distances of `diagonals` clipped to [low, high], each once: farthest, farthest - 1, ...,
// `count` in all. row_at maps each diagonal to its row; it is undefined if nothing is clipped, and
// then row = diagonal.
struct ClippedDistances {
  int64_t farthest = 0, count = 0;
  at::Tensor row_at = {};
};
ClippedDistances clipped_distances(const Diagonals& diagonals, int64_t low, int64_t high);

// Rows of a sinusoid by distance. The latest table of each sign is kept, since all layers of a
// model use the same one. Safe to call from several threads.
class SinusoidTable {
 public:
  explicit SinusoidTable(const SinusoidOptions& options) : sinusoid_(options) {}

  // The sinusoid at sign * distance, sign 1 or -1, for each distance: [distances, width], of the
  // type and on the device of `like`.
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

// u, v: [heads, head_dim]; table.rows: [1 or heads, R, head_dim]. operands.scale must be set
// before: the bias is added to the score after scaling, hence it is multiplied by operands.scale
// here.
void place_with_biases(TensorOperands& operands, const TableOperand& table, const at::Tensor& u,
                       const at::Tensor& v);

}  // namespace sextant
