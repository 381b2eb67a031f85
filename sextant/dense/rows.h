// What a transformer does to each row of its stream between products: norms and an activation, with their
// derivatives, each in one pass over memory.
#pragma once

#include <cstdint>

#include "sextant/attention/executor.h"

namespace sextant::dense {

// y = (x - mean) / deviation * gain, mean and deviation of each row of x [rows, width] (Ba et al. 2016), or,
// not centered, x / rms * gain (Zhang and Sennrich 2019, RMSNorm). epsilon: added to the variance.
struct Norm {
  int64_t rows = 0, width = 0;
  double epsilon = 0;
  bool centered = true;
};

// mean, inverse: [rows], of which derivatives are made; mean may be null if not centered.
void normalize(const Norm& norm, const float* x, const float* gain, float* y, float* mean,
               float* inverse, const Executor& executor);

// From d_y: d_x [rows, width] and d_gain [width], the same bits for any number of threads.
void differentiate_norm(const Norm& norm, const float* x, const float* gain, const float* mean,
                        const float* inverse, const float* d_y, float* d_x, float* d_gain,
                        const Executor& executor);

// y = max(x, 0)^2 (So et al. 2021, "Primer"); d_x = 2 max(x, 0) d_y. May be in place.
void square_relu(const float* x, float* y, int64_t count, const Executor& executor);
void differentiate_square_relu(const float* x, const float* d_y, float* d_x, int64_t count,
                               const Executor& executor);

}  // namespace sextant::dense
