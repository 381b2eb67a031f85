// Products whose sides are many rows and some hundred columns, as those of a layer forward and backward; float32.
//
// A BLAS packs both sides, which at such sizes is a tenth to a third of its time; here the left one is read where
// it lies if its rows are whole in memory.
#pragma once

#include <cstdint>

#include "sextant/attention/executor.h"

namespace sextant::dense {

struct Matrix {
  const float* data = nullptr;
  int64_t rows = 0, columns = 0;
  int64_t row_stride = 0, column_stride = 1;  // in floats

  Matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

// c = base + a b; base null: zeros. Of c and base [a.rows, b.columns] the rows lie one after the other;
// they may be the same. The same bits for any number of threads. Throws Error unless a.columns is b.rows and a has
// a stride of 1.
void multiply(const Matrix& a, const Matrix& b, const float* base, float* c,
              const Executor& executor);

}  // namespace sextant::dense
