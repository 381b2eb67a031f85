// Position vectors that are added to every layer's queries, keys and values (FLOATER and its
// authors' recurrent baseline).
#pragma once

#include <string>

#include "sextant/torch/method.h"

namespace sextant {

// Throws Error, naming `method`, if query heads share keys or if heads * head_dim is not the width:
// the position vectors are as wide as the model and are cut into heads.
void check_injectable(const std::string& method, const ModelShape& shape);

// Adds the rows at the positions of queries and keys to q, k and v. rows: [positions, 3, width] for
// positions 0, 1, ... Throws Error for a negative position.
void add_layer_positions(TensorOperands& operands, const Layout& layout, const at::Tensor& rows);

// The number of rows that add_layer_positions() needs.
int64_t injected_rows(const Layout& layout);

}  // namespace sextant
