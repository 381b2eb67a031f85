// Products whose sides are many rows and some hundred columns, as those of a layer forward and
// backward; float32.
//
// A BLAS packs both sides, which at such sizes is a tenth to a third of its time; here the left one
// is read where it lies if its rows are whole in memory. With AMX both are cut into three parts of
// bfloat16, whose products are off by up to 2^-23 each, of random numbers by less than a rounding
// (sextant/base/simd/amx.h).
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

// What is done with each sum before it is written. All have the rows of c, one after the other;
// base may be c.
struct Epilogue {
  // Is added.
  const float* base = nullptr;
  // Then multiplied by the slope of max(x, 0)^2 at these x, 2 max(x, 0).
  const float* slope_at = nullptr;
  // Gets max(c, 0)^2 (So et al. 2021, "Primer").
  float* squared_relu = nullptr;
};

// c = a b, finished. c [a.rows, b.columns]: its rows lie one after the other. The same bits for any
// number of threads. Throws Error unless a.columns is b.rows and a has a stride of 1.
void multiply(const Matrix& a, const Matrix& b, const Epilogue& finish, float* c,
              const Executor& executor);

}  // namespace sextant::dense
