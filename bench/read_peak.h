// What the memory could do: reading from one end to the other, and nothing else.
#pragma once

#include "sextant/attention/executor.h"

namespace sextant::bench {

// Bytes per second of all workers together over memory that no cache holds, the best of several tries.
// Takes about a quarter of a second.
double read_peak(const Executor& executor);

}  // namespace sextant::bench
