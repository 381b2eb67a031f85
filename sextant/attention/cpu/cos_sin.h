// cos and sin of evenly spaced phases, by vectors.
#pragma once

#include <cstdint>

#include "sextant/position/turns.h"

namespace sextant::cpu {

// What cos_sin_run of position/ gives, bit for bit.
void fast_cos_sin_run(Turns start, Turns step, int64_t count, float* cos, float* sin);

}  // namespace sextant::cpu
