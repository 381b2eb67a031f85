// The operands of a call of attend() for some of its keys.
//
// The results of the parts of all keys, joined by their lse, are those of the call: each part has
// the positions, visible ranges, tables and biases that its keys have in the whole.
#pragma once

#include <ATen/core/Tensor.h>

#include "sextant/position/frame.h"
#include "sextant/torch/operands.h"
#include "sextant/torch/ring/shards.h"

namespace sextant {

// Whether any query of `whole` sees a key at these rows.
bool sees(const TensorOperands& whole, const Positions& keys);

// The operands for the keys k, v at rows `keys` of `whole`, of which k and v are not read. Its
// tables have rows for the distances `diagonals`. It has no pages, packed sequences, dropout, and
// no sink, which belongs to one part only.
TensorOperands key_part(const TensorOperands& whole, const Diagonals& diagonals,
                        const Positions& keys, const at::Tensor& k, const at::Tensor& v);

}  // namespace sextant
