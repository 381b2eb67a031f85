// attend() with a LazyQueryBias. It attends in blocks of queries, and the biases of a block are
// computed, used and freed before the next block.
//
// Both passes need memory for the biases of one block and their intermediate results; the backward
// pass computes the biases again. Every block packs the keys that it sees, so blocks should not be
// short.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "sextant/torch/operands.h"

namespace sextant {

// The results of attend() for operands with a lazy_query_bias. Throws Error if they also have a
// query_bias.
std::tuple<at::Tensor, at::Tensor> attend_by_query(const TensorOperands& operands);

}  // namespace sextant
