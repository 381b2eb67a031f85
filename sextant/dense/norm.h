// LayerNorm and RMSNorm of the rows of a matrix, with their derivatives, each in one pass over
// memory.
#pragma once

#include <cstdint>

#include "sextant/base/executor.h"

namespace sextant::dense {

// y = (x - mean) / deviation * gain, with the mean and standard deviation of each row of x [rows,
// width] (Ba et al. 2016); if not centered, x / rms * gain (Zhang and Sennrich 2019, RMSNorm).
// epsilon is added to the variance.
struct Norm {
  int64_t rows = 0, width = 0;
  double epsilon = 0;
  bool centered = true;
};

// Writes y [rows, width], and mean and inverse (the factor on x - mean) [rows], which the
// derivative needs. mean may be null if not centered.
void normalize(const Norm& norm, const float* x, const float* gain, float* y, float* mean,
               float* inverse, const Executor& executor);

// The inputs of normalize() and its outputs that the derivative needs.
struct Normalized {
  const float *x, *gain, *mean, *inverse;
};

// Computes d_x [rows, width] from d_y, plus base if it is not null, and d_gain [width]. The result
// has the same bits for any number of threads.
void differentiate_norm(const Norm& norm, const Normalized& of, const float* d_y, const float* base,
                        float* d_x, float* d_gain, const Executor& executor);

}  // namespace sextant::dense
