// Operands by name, as a class in Python computes them for an encoding of one's own
// (python/sextant/encoding.py):
//
//   weight, bias, on_query, on_key, on_value   tables by distance
//   weight_rows, bias_rows, ...                int32 [diagonals]: the row of that table; or none
//   key_bias, sink                             as in TensorOperands
//   frequencies                                float64 [pairs], radians per position
//   pairs                                      int64 [pairs, 3]: the columns of each and its axis
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>

#include "sextant/torch/method.h"

namespace sextant {

using NamedOperands = std::map<std::string, at::Tensor>;

// Sets these operands and leaves the others as they are. Throws Error for another name.
void set_operands(TensorOperands& operands, const Layout& layout, const NamedOperands& named);

// A method that sets them.
std::unique_ptr<Method> method_of_operands(NamedOperands named);

}  // namespace sextant
