// Linear layers around attention in official modules, forward and backward, in float64.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/attention/problem.h"

namespace sextant::golden {

using Doubles = std::vector<double>;

// y[n, o] = sum_i x[n, i] w[o, i] + b[o]; b may be empty.
inline Doubles linear(const Doubles& x, const Doubles& w, int64_t inputs, const Doubles& b = {}) {
  const auto in = static_cast<size_t>(inputs);
  const size_t rows = x.size() / in, outputs = w.size() / in;
  Doubles y(rows * outputs);
  for (size_t n = 0; n < rows; ++n) {
    for (size_t o = 0; o < outputs; ++o) {
      double sum = b.empty() ? 0 : b[o];
      for (size_t i = 0; i < in; ++i) sum += x[n * in + i] * w[o * in + i];
      y[n * outputs + o] = sum;
    }
  }
  return y;
}

// dx[n, i] = sum_o dy[n, o] w[o, i]
inline Doubles linear_d_input(const Doubles& dy, const Doubles& w, int64_t inputs) {
  const auto in = static_cast<size_t>(inputs);
  const size_t outputs = w.size() / in, rows = dy.size() / outputs;
  Doubles dx(rows * in);
  for (size_t n = 0; n < rows; ++n) {
    for (size_t o = 0; o < outputs; ++o) {
      for (size_t i = 0; i < in; ++i) dx[n * in + i] += dy[n * outputs + o] * w[o * in + i];
    }
  }
  return dx;
}

// dw[o, i] = sum_n dy[n, o] x[n, i]
inline Doubles linear_d_weight(const Doubles& dy, const Doubles& x, int64_t inputs) {
  const auto in = static_cast<size_t>(inputs);
  const size_t rows = x.size() / in, outputs = dy.size() / rows;
  Doubles dw(outputs * in);
  for (size_t n = 0; n < rows; ++n) {
    for (size_t o = 0; o < outputs; ++o) {
      for (size_t i = 0; i < in; ++i) dw[o * in + i] += dy[n * outputs + o] * x[n * in + i];
    }
  }
  return dw;
}

// db[o] = sum_n dy[n, o]
inline Doubles column_sums(const Doubles& dy, int64_t columns) {
  Doubles sums(static_cast<size_t>(columns));
  for (size_t n = 0; n < dy.size(); ++n) sums[n % sums.size()] += dy[n];
  return sums;
}

inline Doubles sum(Doubles a, const Doubles& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// [batch, rows, heads * columns] -> [batch, heads, rows, columns]
inline oracle::Tensor<double> split_heads(const Doubles& x, int64_t batch, int64_t rows,
                                          int64_t heads) {
  oracle::Tensor<double> y(batch, heads, rows,
                           static_cast<int64_t>(x.size()) / (batch * rows * heads));
  size_t at = 0;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t c = 0; c < y.columns; ++c) y(b, h, i, c) = x[at++];
      }
    }
  }
  return y;
}

// [batch, heads, rows, columns] -> [batch, rows, heads * columns]
inline Doubles merge_heads(const oracle::Tensor<double>& x) {
  Doubles y;
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t i = 0; i < x.rows; ++i) {
      for (int64_t h = 0; h < x.heads; ++h) {
        for (int64_t c = 0; c < x.columns; ++c) y.push_back(x(b, h, i, c));
      }
    }
  }
  return y;
}

}  // namespace sextant::golden
