// What the machine could do: fused multiply-adds that wait for nothing.
#pragma once

#include "sextant/base/executor.h"

namespace sextant::bench {

struct FmaPeak {
  double operations = 0;   // float32 operations per second of all workers: two a multiply-add
  double clock = 0;        // cycles per second of a core
  double vector_rate = 0;  // vectors multiplied and added in a cycle of a worker
};

// The best of several tries. Takes about a quarter of a second. Throws Error if the rate is above
// what any core has units for: then the compiler has left out a part of the loop.
FmaPeak fma_peak(const Executor& executor);

// The same with products of pairs of bfloat16 that are added up in float32: four operations each.
// Zeros where the machine has no instruction for them (or it is NEON's, and this build's Highway is
// older than 1.2).
FmaPeak bfloat16_peak(const Executor& executor);

// About 10 ms of either on each worker, for who times them beside something else: the operations
// done, or 0.
double multiply_and_add(const Executor& executor);
double multiply_and_add_bfloat16(const Executor& executor);

}  // namespace sextant::bench
