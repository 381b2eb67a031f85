// The terms that positions on further axes (arguments.h: AxisRows) add to a score.
#pragma once

#include "sextant/attention/cuda/kernels/tile.cuh"

namespace sextant::cuda {

// The index of a distance in the maps of an axis.
SEXTANT_DEVICE int32_t axis_index(const AxisRows& axis, int32_t b, int32_t i, int32_t j) {
  return static_cast<int32_t>(static_cast<uint32_t>(axis.key_at[b * axis.key_stride + j]) -
                              static_cast<uint32_t>(axis.query_at[b * axis.query_stride + i]));
}

// The terms of the axes for a query and a key: those of A, and those of b.
struct AxisTerms {
  float product = 0, bias = 0;
};
SEXTANT_DEVICE AxisTerms axis_terms(const Arguments& a, int32_t b, int32_t h, int32_t i,
                                    int32_t j) {
  AxisTerms terms;
  for (int32_t n = 0; n < a.axis_count; ++n) {
    const AxisRows& axis = a.axes[n];
    const int32_t d = axis_index(axis, b, i, j);
    if (a.axis_products && axis.on_query && axis.on_query[d] >= 0)
      terms.product +=
          a.axis_products[query_index(a, b, h, i) * a.axis_table_rows + axis.on_query[d]];
    if (a.axis_bias && axis.bias && axis.bias[d] >= 0)
      terms.bias += element(a.axis_bias, place_of(a.axis_bias, 0, h, axis.bias[d], 0));
  }
  return terms;
}

}  // namespace sextant::cuda
