// Kernels of the sums beside the tiles: the origins of key biases, the means of the softmax's
// gradient, and the gradients of sinks and tables.
#pragma once

#include "sextant/attention/cuda/kernels/rows.cuh"

namespace sextant::cuda {

// For each query, the largest key bias among the keys that it sees, or 0 if there is none or it is
// not finite (key_bias.h). A thread for each query, head and entry.
SEXTANT_KERNEL void origins(const Arguments a) {
  const int32_t b = block().z, h = block().y;
  for (int64_t i = grid_thread(); i < a.queries; i += grid_threads()) {
    double most = -INFINITY;
    for (int32_t n = 0; n < a.sweeps; ++n) {
      const Visible seen = a.visible[(static_cast<int64_t>(n) * a.batch + b) * a.queries + i];
      for (int64_t j = seen.first; j < seen.last; ++j) {
        const double bias =
            static_cast<const double*>(a.key_bias.data)[place_of(a.key_bias, b, h, j, 0)];
        most = bias > most ? bias : most;
      }
    }
    const bool finite = most - most == 0;
    a.origins[(static_cast<int64_t>(b) * a.heads + h) * a.queries + i] = finite ? most : 0;
  }
}

// e^(sink - lse) of a query, which is element `at` of [batch, heads, queries]; 0 if there is no
// lse.
SEXTANT_DEVICE float weight_of_sink(const Arguments& a, int64_t b, int32_t h, int64_t i,
                                    int64_t at) {
  const float lse = lse_at(a, b, h, i);
  const double origin = a.origins ? a.origins[at] : 0;
  return lse == -INFINITY ? 0.0F : expf(static_cast<float>(sink_of(a, b, h, i) - origin - lse));
}

// The sum over columns of d_out and out, for each query; and the gradient of the query's own sink.
SEXTANT_KERNEL void means(const Arguments a) {
  const int32_t b = block().z, h = block().y;
  for (int64_t i = grid_thread(); i < a.queries; i += grid_threads()) {
    float sum = 0;
    const int64_t out = place_of(a.out, b, h, i, 0), d_out = place_of(a.d_out, b, h, i, 0);
    for (int c = 0; c < a.width; ++c)
      sum = fmaf(element(a.out, out + c * a.out.column_stride),
                 element(a.d_out, d_out + c * a.d_out.column_stride), sum);
    const int64_t at = query_index(a, b, h, i);
    a.means[at] = sum;
    if (a.d_query_sink)
      set_element(a.d_query_sink, place_of(a.d_query_sink, b, h, i, 0),
                  -weight_of_sink(a, b, h, i, at) * sum);
  }
}

// d_sink[h] = - sum over queries of e^(sink - lse) mean. A block for each head; threads sum their
// queries in order, and the first thread sums the threads.
SEXTANT_KERNEL void sink_gradient(const Arguments a) {
  const int32_t h = block().y;
  double sum = 0;
  for (int64_t n = thread(); n < static_cast<int64_t>(a.batch) * a.queries; n += threads()) {
    const int64_t b = n / a.queries, i = n % a.queries, at = (b * a.heads + h) * a.queries + i;
    sum -= static_cast<double>(weight_of_sink(a, b, h, i, at)) * static_cast<double>(a.means[at]);
  }
  double* const of_threads = reinterpret_cast<double*>(shared_memory());
  of_threads[thread()] = sum;
  sync_block();
  if (thread() != 0) return;
  double total = 0;
  for (int n = 0; n < threads(); ++n) total += of_threads[n];
  a.d_sink[h] = static_cast<float>(total);
}

// The gradient of each row of a table: the sum over the heads that share it, its diagonals in
// order, and the two bands of each diagonal. a.to: [1, 1 or heads, rows, columns].
SEXTANT_KERNEL void fold_table(const Arguments a) {
  const int tile = a.tile;
  const int64_t all = a.rows * a.to.columns;
  const int64_t columns16 = a.columns16;
  const int32_t first = a.shared_heads != 0 ? 0 : block().y;
  const int32_t last = a.shared_heads != 0 ? a.heads : first + 1;
  for (int64_t n = grid_thread(); n < all; n += grid_threads()) {
    const int64_t row = n / a.to.columns, c = n % a.to.columns;
    double sum = 0;
    for (int32_t h = first; h < last; ++h)
      for (int32_t at = a.row_begin[row]; at < a.row_begin[row + 1]; ++at) {
        const int64_t diagonal = a.diagonal_at[at];
        const int64_t low = diagonal / tile, high = (diagonal + tile - 1) / tile;
        for (int64_t band = low; band <= high; ++band)
          sum += static_cast<double>(a.sums[((h * static_cast<int64_t>(a.bands) + band) * 2 * tile +
                                             diagonal - band * tile + tile - 1) *
                                                columns16 +
                                            c]);
      }
    set_element(a.to, place_of(a.to, 0, block().y, row, c), static_cast<float>(sum));
  }
}

}  // namespace sextant::cuda
