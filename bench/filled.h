// Scratch of the attention kernels for programs that call their steps alone.
#pragma once

#include <functional>

#include "sextant/attention/cpu/arena.h"

namespace sextant::bench {

// Memory laid out as a kernel's scratch is, filled with numbers between -1/2 and 1/2 of which no
// two neighbours are alike.
AlignedFloats filled(const std::function<void(cpu::Arena&)>& lay_out);

}  // namespace sextant::bench
