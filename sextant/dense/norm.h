// What a transformer does to each row of its stream between products: norms, with their
// derivatives, each in one pass over memory.
#pragma once

#include <cstdint>

#include "sextant/base/executor.h"

namespace sextant::dense {

// y = (x - mean) / deviation * gain, mean and deviation of each row of x [rows, width] (Ba et al.
// 2016), or, not centered, x / rms * gain (Zhang and Sennrich 2019, RMSNorm). epsilon: added to the
// variance.
struct Norm {
  int64_t rows = 0, width = 0;
  double epsilon = 0;
  bool centered = true;
};

// mean, inverse: [rows], of which derivatives are made; mean may be null if not centered.
void normalize(const Norm& norm, const float* x, const float* gain, float* y, float* mean,
               float* inverse, const Executor& executor);

// What normalize() read and left.
struct Normalized {
  const float *x, *gain, *mean, *inverse;
};

// From d_y: d_x [rows, width], with base added if it is not null, and d_gain [width]. The same bits
// for any number of threads.
void differentiate_norm(const Norm& norm, const Normalized& of, const float* d_y, const float* base,
                        float* d_x, float* d_gain, const Executor& executor);

}  // namespace sextant::dense
