// Positions that enter every layer, added to its queries, keys and values (FLOATER and its rival).
#pragma once

#include <string>

#include "sextant/torch/method.h"

namespace sextant {

// Throws Error, naming `method`, if keys are shared by query heads or heads do not fill the width:
// the vectors are as wide as the model and are cut into heads.
void check_injectable(const std::string& method, const ModelShape& shape);

// rows [positions, 3, width] for positions 0, 1, ...: adds to q, k and v what stands at their
// positions. Throws Error for a negative position.
void add_layer_positions(Operands& operands, const Layout& layout, const at::Tensor& rows);

// How many rows inject() needs.
int64_t injected_rows(const Layout& layout);

}  // namespace sextant
