// Float32 matrix products for the shapes of a transformer layer, forward and backward: many rows
// and some hundred columns.
//
// A BLAS packs both operands, which takes a tenth to a third of its time at such sizes; here the
// left operand is read in place if its rows are contiguous. With AMX both operands are split into
// three bfloat16 terms: the error of each product is then up to 2^-23, and for random values less
// than that of rounding to float32 (sextant/base/simd/amx.h).
#pragma once

#include <cstdint>

#include "sextant/base/executor.h"

namespace sextant::dense {

struct Matrix {
  const float* data = nullptr;
  int64_t rows = 0, columns = 0;
  int64_t row_stride = 0, column_stride = 1;  // in floats

  Matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

// The operations on each sum before it is written. The arrays are row-major with the shape of c;
// base may be c.
struct Epilogue {
  // Added to the sum.
  const float* base = nullptr;
  // The sum is then multiplied by the slope of max(x, 0)^2 at these x, 2 max(x, 0).
  const float* slope_at = nullptr;
  // Receives max(c, 0)^2 (So et al. 2021, "Primer").
  float* squared_relu = nullptr;
};

// c = a b with the epilogue applied; c [a.rows, b.columns] is row-major. The result has the same
// bits for any number of threads. Throws Error unless a.columns is b.rows and one of a's strides is
// 1.
void multiply(const Matrix& a, const Matrix& b, const Epilogue& finish, float* c,
              const Executor& executor);

}  // namespace sextant::dense
