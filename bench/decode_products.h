// The upper bound of decoding: its two products alone, with the kernel's own code.
#pragma once

#include "sextant/attention/score.h"
#include "sextant/base/executor.h"

namespace sextant::bench {

// Multiplies a few queries with all keys of their frames, and their weights with the values,
// without rotations. It goes through the units in the order of decoding; each task is one key head
// of one batch entry.
void multiply_cached(const Score<float>& score, const Executor& executor);

}  // namespace sextant::bench
