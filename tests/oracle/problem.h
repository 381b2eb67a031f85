// A score equation that owns its operands: what tests build, change and hand to backends.
//
// T is float or double. Everything is contiguous; strides are the business of their own tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/executor.h"
#include "sextant/attention/score.h"

namespace sextant::oracle {

template <class T>
struct Tensor {
  int64_t batch = 0, heads = 0, rows = 0, columns = 0;
  std::vector<T> data;

  Tensor() = default;
  Tensor(int64_t b, int64_t h, int64_t r, int64_t c)
      : batch(b), heads(h), rows(r), columns(c), data(static_cast<size_t>(b * h * r * c)) {}

  T& operator()(int64_t b, int64_t h, int64_t row, int64_t column) {
    return data[static_cast<size_t>(((b * heads + h) * rows + row) * columns + column)];
  }
  const T& operator()(int64_t b, int64_t h, int64_t row, int64_t column) const {
    return const_cast<Tensor&>(*this)(b, h, row, column);
  }
  View<T> view() { return view_of<T>(data.data()); }
  View<const T> view() const { return view_of<const T>(data.data()); }

  template <class U>
  Tensor<U> as() const {
    Tensor<U> other(batch, heads, rows, columns);
    for (size_t i = 0; i < data.size(); ++i) other.data[i] = static_cast<U>(data[i]);
    return other;
  }

 private:
  template <class U>
  View<U> view_of(U* at) const {
    return {at, batch, heads, rows, columns, heads * rows * columns, rows * columns, columns, 1};
  }
};

template <class T>
struct TableOf {
  Tensor<T> rows;               // [1, 1 or heads, R, columns], or of no size: no such term
  std::vector<int32_t> row_at;  // diagonal -> row, or empty
};

struct OwnedSweep {
  std::vector<Run> runs = {};                             // [queries], or [batch, queries]
  Rotation rotation = {};                                 // no pairs: q and k as they are
  std::vector<int64_t> query_times = {}, key_times = {};  // [axes, rows], for every batch entry
  std::vector<Turns> query_offset = {}, key_offset = {};
};

template <class T>
struct Problem {
  Tensor<T> q, k, v;
  double scale = 1;
  std::vector<Frame> frames;
  std::vector<OwnedSweep> sweeps;
  Diagonals diagonals;
  TableOf<T> bias, on_query, on_key, on_value;
  std::vector<T> sink;
  Tensor<uint8_t> mask;  // [1 or batch, 1 or heads, queries, keys], or of no size

  // Views into this problem, which must stay where it is.
  Score<T> score() const;

  template <class U>
  Problem<U> as() const;
};

template <class T>
struct Result {
  Tensor<T> out, lse;
};

// Of every operand that the problem has.
template <class T>
struct Gradients {
  Tensor<T> q, k, v, bias, on_query, on_key, on_value;
  std::vector<T> sink;
};

template <class T>
Result<T> attend(const Problem<T>& problem, const Backend& backend,
                 const Executor& executor = serial_executor());

template <class T>
Gradients<T> attend_backward(const Problem<T>& problem, const Result<T>& result,
                             const Tensor<T>& d_out, const Backend& backend,
                             const Executor& executor = serial_executor());

// softmax_j(s_ij), [batch, heads, queries, keys]: what attention gives when the values are the rows of
// the identity.
template <class T>
Tensor<T> probabilities(Problem<T> problem, const Backend& backend);

// One frame over all rows, one sweep over `visible`, and diagonals for every distance there is.
// Query row i stands at first_query + i, key row j at j.
template <class T>
void place_plainly(Problem<T>& problem, int64_t first_query, std::vector<Run> visible);

std::vector<Run> causal_runs(int64_t queries, int64_t first_query);
std::vector<Run> whole_runs(int64_t queries, int64_t keys);

}  // namespace sextant::oracle
