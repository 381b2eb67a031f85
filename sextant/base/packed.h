// A view of contiguous memory in row-major order: [batch, heads, rows, columns], columns innermost.
#pragma once

#include <cstdint>

#include "sextant/base/view.h"

namespace sextant {

template <class T>
View<T> packed(T* data, int64_t batch, int64_t heads, int64_t rows, int64_t columns) {
  return {.data = data,
          .batch = batch,
          .heads = heads,
          .rows = rows,
          .columns = columns,
          .batch_stride = heads * rows * columns,
          .head_stride = rows * columns,
          .row_stride = columns};
}

}  // namespace sextant
