// Operands, results and gradients that own their memory: contiguous, [batch, heads, rows, columns].
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/score.h"
#include "sextant/base/executor.h"

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
    return data[static_cast<size_t>(((b * heads + h) * rows + row) * columns + column)];
  }
  View<T> view() { return view_at(data.data()); }
  View<const T> view() const { return view_at(data.data()); }

  template <class U>
  Tensor<U> as() const {
    Tensor<U> other(batch, heads, rows, columns);
    for (size_t i = 0; i < data.size(); ++i) other.data[i] = static_cast<U>(data[i]);
    return other;
  }

 private:
  template <class U>
  View<U> view_at(U* at) const {
    return {at, batch, heads, rows, columns, heads * rows * columns, rows * columns, columns, 1};
  }
};

template <class T>
struct Result {
  Tensor<T> out, lse;

  Result() = default;
  explicit Result(const Score<T>& score);
};

// The gradients of all operands that a score has; the others are empty.
template <class T>
struct Gradients {
  Tensor<T> q, k, v, q_imag, weight, bias, on_query, on_key, on_value, query_bias, key_bias,
      sink;  // sink: [1, 1, 1, heads]
  Tensor<T> axis_bias, axis_on_query, table_query, query_sink;

  Gradients() = default;
  explicit Gradients(const Score<T>& score);

  // Calls f(name, member) for each, so that tests can iterate over two Gradients in parallel.
  template <class F>
  static void each(F&& f) {
    f("dq", &Gradients::q);
    f("dk", &Gradients::k);
    f("dv", &Gradients::v);
    f("d_q_imag", &Gradients::q_imag);
    f("d_weight", &Gradients::weight);
    f("d_bias", &Gradients::bias);
    f("d_on_query", &Gradients::on_query);
    f("d_on_key", &Gradients::on_key);
    f("d_on_value", &Gradients::on_value);
    f("d_query_bias", &Gradients::query_bias);
    f("d_key_bias", &Gradients::key_bias);
    f("d_sink", &Gradients::sink);
    f("d_axis_bias", &Gradients::axis_bias);
    f("d_axis_on_query", &Gradients::axis_on_query);
    f("d_table_query", &Gradients::table_query);
    f("d_query_sink", &Gradients::query_sink);
  }
};

template <class T>
Result<T> attend(const Score<T>& score, const Backend& backend,
                 const Executor& executor = serial_executor());
template <class T>
Gradients<T> attend_backward(const Score<T>& score, const Result<T>& result,
                             std::type_identity_t<AnyView<const T>> d_out, const Backend& backend,
                             const Executor& executor = serial_executor());
template <class T>
Gradients<T> attend_backward(const Score<T>& score, const Result<T>& result, const Tensor<T>& d_out,
                             const Backend& backend, const Executor& executor = serial_executor()) {
  return attend_backward(score, result, AnyView<const T>(d_out.view()), backend, executor);
}

// softmax_j(s_ij), [batch, heads, queries, keys]: attention with the rows of the identity as
// values.
template <class T>
Tensor<T> probabilities(Score<T> score, const Backend& backend);

}  // namespace sextant::oracle
