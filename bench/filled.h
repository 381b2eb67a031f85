// Scratch memory of the attention kernels, for programs that call their steps alone.
#pragma once

#include <functional>

#include "sextant/attention/cpu/arena.h"

namespace sextant::bench {

// Memory with the layout of a kernel's scratch, filled with values between -1/2 and 1/2. No two
// neighbours are equal.
AlignedFloats filled(const std::function<void(cpu::Arena&)>& lay_out);

}  // namespace sextant::bench
