// Applies RoPE in place, for attention implementations that do not handle positions.
#pragma once

#include <span>

#include "sextant/attention/score.h"
#include "sextant/base/executor.h"
#include "sextant/base/export.h"

namespace sextant {

// Rotates every row of each view [batch, heads, rows, columns] by its rotary position, in place,
// and multiplies the rotated columns by the rotation's gain. Views have the same batch and rows,
// and share cos and sin, which are computed once for all heads. side.rotation is set and
// side.frame_stride is 0; rotary positions are indexed by row of a view. Throws Error if the
// rotation has growth (XPOS: growth needs both sides), or names a column that a view lacks or the
// same column twice. No two rows of the views may share memory.
//
// The result is bitwise equal to the rotation within attention, for any number of threads. The cost
// is about that of a copy if 16 heads or more share the angles and the pairs are halves of a row or
// neighbours.
SEXTANT_API void rotate_rows(std::span<const HostView<float>> views, const SideRotation& side,
                             const Executor& executor);

}  // namespace sextant
