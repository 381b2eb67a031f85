#include "tests/attention/tensor.h"

#include <utility>

namespace sextant::oracle {
namespace {

template <class T>
Tensor<T> like(const AnyView<const T>& view) {
  return view ? Tensor<T>(view.batch, view.heads, view.rows, view.columns) : Tensor<T>();
}

// Null for an empty tensor, so that no gradient is computed for an absent operand.
template <class T>
View<T> seen(Tensor<T>& tensor) {
  return tensor.data.empty() ? View<T>{} : tensor.view();
}

}  // namespace

template <class T>
Result<T>::Result(const Score<T>& score)
    : out(score.q.batch, score.q.heads, score.q.rows, score.v.columns),
      lse(score.q.batch, score.q.heads, score.q.rows, 1) {}

template <class T>
Gradients<T>::Gradients(const Score<T>& score)
    : q(like<T>(score.q)),
      k(like<T>(score.k)),
      v(like<T>(score.v)),
      q_imag(like<T>(score.q_imag)),
      weight(like<T>(score.weight)),
      bias(like<T>(score.bias)),
      on_query(like<T>(score.on_query)),
      on_key(like<T>(score.on_key)),
      on_value(like<T>(score.on_value)),
      query_bias(like<T>(score.query_bias)),
      axis_bias(like<T>(score.axis_bias)),
      axis_on_query(like<T>(score.axis_on_query)),
      table_query(like<T>(score.table_query)),
      query_sink(like<T>(score.query_sink)) {
  if (const auto& c = score.key_bias) key_bias = Tensor<T>(c.batch, c.heads, c.rows, c.columns);
  if (!score.sink.empty()) sink = Tensor<T>(1, 1, 1, static_cast<int64_t>(score.sink.size()));
}

template <class T>
Result<T> attend(const Score<T>& score, const Backend& backend, const Executor& executor) {
  Result<T> result(score);
  sextant::attend<T>(score, {result.out.view(), result.lse.view()}, backend, executor);
  return result;
}

template <class T>
Gradients<T> attend_backward(const Score<T>& score, const Result<T>& result,
                             std::type_identity_t<AnyView<const T>> d_out, const Backend& backend,
                             const Executor& executor) {
  Gradients<T> g(score);
  const ScoreGrad<T> grad{.q = seen(g.q),
                          .k = seen(g.k),
                          .v = seen(g.v),
                          .q_imag = seen(g.q_imag),
                          .weight = seen(g.weight),
                          .bias = seen(g.bias),
                          .on_query = seen(g.on_query),
                          .on_key = seen(g.on_key),
                          .on_value = seen(g.on_value),
                          .axis_bias = seen(g.axis_bias),
                          .axis_on_query = seen(g.axis_on_query),
                          .table_query = seen(g.table_query),
                          .query_sink = seen(g.query_sink),
                          .query_bias = seen(g.query_bias),
                          .key_bias = seen(g.key_bias),
                          .sink = g.sink.data};
  sextant::attend_backward<T>(score, {result.out.view(), result.lse.view()}, d_out, grad, backend,
                              executor);
  return g;
}

template <class T>
Tensor<T> probabilities(Score<T> score, const Backend& backend) {
  Tensor<T> identity(score.k.batch, score.k.heads, score.k.rows, score.k.rows);
  for (int64_t b = 0; b < identity.batch; ++b) {
    for (int64_t h = 0; h < identity.heads; ++h) {
      for (int64_t j = 0; j < identity.rows; ++j) identity(b, h, j, j) = 1;
    }
  }
  score.on_value = {};
  score.v = std::as_const(identity).view();
  return attend(score, backend).out;
}

template struct Result<float>;
template struct Result<double>;
template struct Gradients<float>;
template struct Gradients<double>;
template Result<float> attend(const Score<float>&, const Backend&, const Executor&);
template Result<double> attend(const Score<double>&, const Backend&, const Executor&);
template Gradients<float> attend_backward(const Score<float>&, const Result<float>&,
                                          AnyView<const float>, const Backend&, const Executor&);
template Gradients<double> attend_backward(const Score<double>&, const Result<double>&,
                                           AnyView<const double>, const Backend&, const Executor&);
template Tensor<float> probabilities(Score<float>, const Backend&);
template Tensor<double> probabilities(Score<double>, const Backend&);

}  // namespace sextant::oracle
