// Kernels of the terms of further axes beside the tiles: the products of all queries with all rows
// of A, which tiles then read by distance, and the gradients from the sums of tiles. x is q, or r:
//
//   U[i, row] = x_i . A[row]      dx_i = sum over rows of dU[i, row] A[row]
//   dA[row] = sum over entries and queries of dU[i, row] x_i
//
// A thread computes an element, so each sum has one order.
#pragma once

#include "sextant/attention/cuda/kernels/rows.cuh"

namespace sextant::cuda {

SEXTANT_KERNEL void axis_products(const Arguments a) {
  const int32_t b = block().z, h = block().y;
  const Rows &x = a.q_raw, &table = a.axis_on_query;
  const int64_t rows = a.axis_table_rows, of_head = a.queries * rows;
  float* const to = a.axis_products + query_index(a, b, h, 0) * rows;
  for (int64_t n = grid_thread(); n < of_head; n += grid_threads()) {
    float sums[8] = {};  // of every eighth column, so that errors stay small
    for (int first = 0; first < table.columns; first += 8) {
      SEXTANT_UNROLL
      for (int e = 0; e < 8; ++e) {
        const int c = first + e;
        if (c < table.columns)
          sums[e] = fmaf(element(x, place_of(x, b, h, n / rows, c)),
                         element(table, place_of(table, 0, h, n % rows, c)), sums[e]);
      }
    }
    to[n] =
        ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }
}

// Adds dx to rows of a.to, of float32.
SEXTANT_KERNEL void axis_rows_grad(const Arguments a) {
  const int32_t b = block().z, h = block().y;
  const Rows& table = a.axis_on_query;
  const int64_t rows = a.axis_table_rows;
  const float* const of_head = a.d_axis_products + query_index(a, b, h, 0) * rows;
  for (int64_t n = grid_thread(); n < int64_t{a.queries} * table.columns; n += grid_threads()) {
    const int64_t i = n / table.columns, c = n % table.columns;
    float sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      // A row that no key of the query has adds nothing, whatever it holds.
      const float d = of_head[i * rows + row];
      if (d != 0) sum = fmaf(d, element(table, place_of(table, 0, h, row, c)), sum);
    }
    static_cast<float*>(a.to.data)[place_of(a.to, b, h, i, c)] += sum;
  }
}

// Calls f(head) for those that share the table of this block's head.
template <class F>
SEXTANT_DEVICE void each_sharing_head(const Arguments& a, F&& f) {
  const int32_t first = a.shared_heads != 0 ? 0 : block().y;
  for (int32_t h = first; h < (a.shared_heads != 0 ? a.heads : first + 1); ++h) f(h);
}

// Sets a.to, [1, 1 or heads, rows, columns], to dA.
SEXTANT_KERNEL void axis_table_grad(const Arguments a) {
  const Rows& x = a.q_raw;
  const int64_t rows = a.axis_table_rows;
  for (int64_t n = grid_thread(); n < rows * a.to.columns; n += grid_threads()) {
    const int64_t row = n / a.to.columns, c = n % a.to.columns;
    double sum = 0;
    each_sharing_head(a, [&](int32_t h) {
      for (int64_t b = 0; b < a.batch; ++b)
        for (int64_t i = 0; i < a.queries; ++i) {
          const float d = a.d_axis_products[query_index(a, b, h, i) * rows + row];
          if (d != 0)
            sum +=
                static_cast<double>(d) * static_cast<double>(element(x, place_of(x, b, h, i, c)));
        }
    });
    set_element(a.to, place_of(a.to, 0, block().y, row, c), static_cast<float>(sum));
  }
}

// Sets a.to, [1, 1 or heads, rows, 1], to the sum of what blocks have summed.
SEXTANT_KERNEL void axis_bias_grad(const Arguments a) {
  const int64_t rows = a.axis_bias_rows;
  for (int64_t row = grid_thread(); row < rows; row += grid_threads()) {
    double sum = 0;
    each_sharing_head(a, [&](int32_t h) {
      for (int64_t n = 0; n < a.blocks; ++n)
        sum += a.axis_bias_sums[(n * a.heads + h) * rows + row];
    });
    set_element(a.to, place_of(a.to, 0, block().y, row, 0), static_cast<float>(sum));
  }
}

}  // namespace sextant::cuda
