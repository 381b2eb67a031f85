// The machine's peak of fused multiply-adds, from independent chains.
#pragma once

#include "sextant/base/executor.h"

namespace sextant::bench {

struct FmaPeak {
  double operations = 0;   // float32 operations per second of all workers; a multiply-add is two
  double clock = 0;        // cycles per second of a core
  double vector_rate = 0;  // vector multiply-adds per cycle and worker
};

// The best of several tries. Takes about a quarter of a second. Throws Error if the rate is higher
// than the units of any core allow, since the compiler has then removed a part of the loop.
FmaPeak fma_peak(const Executor& executor);

// The same with dot products of bfloat16 pairs that accumulate in float32, four operations each.
// Zeros if the machine has no such instruction, or if it is NEON's and Highway is older than 1.2.
FmaPeak bfloat16_peak(const Executor& executor);

// Runs about 10 ms of either on each worker, for interleaved timing beside other calls. Returns the
// number of operations, or 0 without the instruction.
double multiply_and_add(const Executor& executor);
double multiply_and_add_bfloat16(const Executor& executor);

}  // namespace sextant::bench
