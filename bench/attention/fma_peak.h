// What the machine could do: fused multiply-adds that wait for nothing.
#pragma once

#include "sextant/attention/executor.h"

namespace sextant::bench {

// Float32 operations per second (two for each multiply-add) of all workers together, the best of several
// tries. Takes about a quarter of a second.
double fma_peak(const Executor& executor);

}  // namespace sextant::bench
