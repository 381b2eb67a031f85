// AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101) in one pass over a parameter's elements.
//
//   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2
//   w = (1 - rate decay) w - rate / (1 - beta1^step) m / (sqrt(v / (1 - beta2^step)) + epsilon)
#pragma once

#include <cstdint>

#include "sextant/base/executor.h"

namespace sextant::dense {

struct AdamW {
  double rate = 0;  // the learning rate of this step
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0;
  int64_t step = 1;           // counts from 1
  double gradient_scale = 1;  // multiplies g first, for clipping
};

// Arrays of [count] elements; all but the gradient are updated.
struct AdamWState {
  float* weight = nullptr;
  float* moment1 = nullptr;
  float* moment2 = nullptr;
  const float* gradient = nullptr;
  int64_t count = 0;
};

void advance(const AdamW& adamw, const AdamWState& state, const Executor& executor);

// Accumulates in float64, with the same bits for any number of threads.
double sum_of_squares(const float* x, int64_t count, const Executor& executor);

}  // namespace sextant::dense
