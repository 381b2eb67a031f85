// Rows turned where they lie, outside attention: what one does to queries and keys before an
// attention that knows no positions.
#pragma once

#include <span>

#include "sextant/attention/score.h"
#include "sextant/base/executor.h"

namespace sextant {

// Turns every row of each view [batch, heads, rows, columns] by its time, in place, and multiplies
// what is turned by the rotation's gain. Views have the same batch and rows, and share cos and sin,
// which are computed once for all heads. turn.rotation is there and its frame_stride 0; times are
// read by row of a view. Throws Error if a rotation grows (XPOS: growth needs both sides), names
// columns that a view lacks or one of them twice. No two rows of the views may share memory.
//
// Bits are those of rows turned within attention, for any number of threads. Costs about what
// copying costs if 16 heads or more share the angles and pairs are halves of a row or neighbours.
void rotate_rows(std::span<const View<float>> views, const SideRotation& side,
                 const Executor& executor);

}  // namespace sextant
