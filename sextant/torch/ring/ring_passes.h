// The passes of ring attention, in which keys and values of all ranks visit each rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>
#include <vector>

#include "sextant/position/frame.h"
#include "sextant/torch/group.h"
#include "sextant/torch/operands.h"
#include "sextant/torch/ring/shards.h"

namespace sextant {

// A rank's queries at consecutive positions, with all keys of the sequence: operands without k and
// v, whose tables have rows for the distances `diagonals`.
struct RingQueries {
  TensorOperands operands;
  Diagonals diagonals;
};

// (out, lse) of each of the `queries`, in the type of the computation. k and v are the rank's own
// rows. Differentiable once, in all of them; all ranks must then run the backward pass. No keys of
// other ranks are kept between the passes. Gradients are of the sum of the losses of all ranks:
// those of k and v are complete, those of other operands are this rank's part.
std::vector<std::tuple<at::Tensor, at::Tensor>> ring_passes(const Group& group, Shards shards,
                                                            const std::vector<RingQueries>& queries,
                                                            const at::Tensor& k,
                                                            const at::Tensor& v);

}  // namespace sextant
