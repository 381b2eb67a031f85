// attend() where queries have biases of their own (LazyQueryBias): in blocks of queries, each of
// which asks for its biases, uses them, and lets go of them.
//
// Memory is that of one block's biases and what they are made of, in the backward pass too, which
// makes them once more. Every block packs the keys that it sees, so blocks should not be short.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "sextant/torch/operands.h"

namespace sextant {

// What attend() promises, for operands with a lazy_query_bias and then no query_bias; throws Error
// otherwise.
std::tuple<at::Tensor, at::Tensor> attend_by_query(const Operands& operands);

}  // namespace sextant
