// What the memory could do: reading, and nothing else.
#pragma once

#include "sextant/attention/executor.h"

namespace sextant::bench {

// Bytes per second of all workers together over memory that no cache holds, each reading from one to eight places
// at once: the best of several tries. Takes about a second.
double read_peak(const Executor& executor);

}  // namespace sextant::bench
