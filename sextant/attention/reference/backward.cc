#include <cmath>
#include <vector>

#include "sextant/attention/reference/head.h"
#include "sextant/base/packed.h"

namespace sextant::reference {
namespace {

// Gradients of one query head, before the sums over heads and batch entries that share an operand.
struct HeadGrad {
  Rows q, k, v, q_imag;
  Rows weight, bias, on_query, on_key, on_value, query_bias, key_bias;
  Rows axis_bias, axis_on_query, table_query, query_sink;
  std::vector<Rows> q_turned, k_turned, q_imag_turned;  // rotated; one per sweep
  double sink = 0;

  template <class T>
  explicit HeadGrad(const HostScore<T>& s) {
    const auto like = [](const auto& x) { return Rows(x.rows, x.columns); };
    each_differentiable([&](auto operand) {
      if constexpr (operand.has(Axis::kRows))
        operand.of(*this) = like(operand.of(s).rows);
      else if constexpr (operand.axis(1) != Axis::kNone)
        operand.of(*this) = like(operand.of(s));
    });
    q_turned.assign(s.sweeps.size(), q);
    k_turned.assign(s.sweeps.size(), k);
    q_imag_turned.assign(s.sweeps.size(), q_imag);
  }
};

// Adds the contributions of e, the gradient of table_product(), to those of A and of q or r.
template <class T>
void add_query_tables(const Head<T>& head, int64_t i, int64_t j, int64_t diagonal, double e,
                      HeadGrad& grad) {
  const HostScore<T>& s = head.s;
  double* const query = (s.table_query ? grad.table_query : grad.q).row(i);
  for (int64_t c = 0; head.on_query && c < head.on_query.columns(); ++c) {
    query[c] += e * head.on_query(diagonal, c);
    grad.on_query.row(head.on_query.row(diagonal))[c] += e * head.of_table_query(i, c);
  }
  const HostView<const T>& rows = s.axis_on_query;
  if (!rows) return;
  head.each_axis_row(&PositionAxis::on_query, i, j, [&](int64_t row) {
    for (int64_t c = 0; c < rows.columns; ++c) {
      query[c] += e * static_cast<double>(rows(0, rows.heads == 1 ? 0 : head.h, row, c));
      grad.axis_on_query.row(row)[c] += e * head.of_table_query(i, c);
    }
  });
}

// Adds the contributions of e, the gradient of the real part of p_ij, to the tables' gradients.
template <class T>
void add_tables(const Head<T>& head, int64_t i, int64_t j, int64_t diagonal, double e,
                HeadGrad& grad) {
  if (!head.s.table_query) add_query_tables(head, i, j, diagonal, e, grad);
  if (head.on_key)
    for (int64_t c = 0; c < head.on_key.columns(); ++c) {
      grad.k.row(j)[c] += e * head.on_key(diagonal, c);
      grad.on_key.row(head.on_key.row(diagonal))[c] +=
          e * static_cast<double>(head.s.k(head.b, head.key_head, j, c));
    }
}

// Adds the contributions of one pair (i, j), with product p and score gradient ds, to the gradients
// of the score's operands.
template <class T>
void add_score(const Head<T>& head, size_t n, int64_t i, int64_t j, int64_t diagonal,
               const typename Head<T>::Product& p, double ds, HeadGrad& grad) {
  const HostScore<T>& s = head.s;
  if (head.bias) grad.bias.row(head.bias.row(diagonal))[0] += ds;
  if (s.axis_bias)
    head.each_axis_row(&PositionAxis::bias, i, j,
                       [&](int64_t row) { grad.axis_bias.row(row)[0] += ds; });
  if (s.table_query) add_query_tables(head, i, j, diagonal, ds, grad);
  if (s.query_bias) grad.query_bias.row(i)[diagonal] += ds;
  if (s.key_bias) grad.key_bias.row(j)[0] += ds;
  const double dx = ds * head.cap_slope(head.capped(p, diagonal));  // x = scale w[d] p
  if (head.weight) grad.weight.row(head.weight.row(diagonal))[0] += dx * s.scale * p.size;
  const double e = dx * s.scale * (head.weight ? head.weight(diagonal, 0) : 1);
  // d|p| = (real d real + imaginary d imaginary) / |p|
  const double e_real = !s.q_imag ? e : p.size == 0 ? 0 : e * (p.real / p.size);
  const double e_imaginary = !s.q_imag || p.size == 0 ? 0 : e * (p.imaginary / p.size);
  const std::vector<double> grown = head.growth(n, i, j);
  for (int64_t c = 0; c < s.q.columns; ++c) {
    const double g = grown[static_cast<size_t>(c)];
    grad.q_turned[n].row(i)[c] += e_real * g * head.k[n].row(j)[c];
    grad.k_turned[n].row(j)[c] += e_real * g * head.q[n].row(i)[c];
    if (!s.q_imag) continue;
    grad.q_imag_turned[n].row(i)[c] += e_imaginary * g * head.k[n].row(j)[c];
    grad.k_turned[n].row(j)[c] += e_imaginary * g * head.q_imag[n].row(i)[c];
  }
  add_tables(head, i, j, diagonal, e_real, grad);
}

template <class T>
void add_value(const Head<T>& head, int64_t i, int64_t j, int64_t diagonal, double p,
               const HostAnyView<const T>& d_out, HeadGrad& grad) {
  for (int64_t c = 0; c < head.s.v.columns; ++c) {
    const double g = p * static_cast<double>(d_out(head.b, head.h, i, c));
    grad.v.row(j)[c] += g;
    if (head.on_value) grad.on_value.row(head.on_value.row(diagonal))[c] += g;
  }
}

template <class T>
void backward_query(const Head<T>& head, const Frame& frame, int64_t i,
                    const HostAttended<const T>& result, const HostAnyView<const T>& d_out,
                    HeadGrad& grad) {
  const double lse = static_cast<double>(result.lse(head.b, head.h, i, 0));
  if (lse == -kInfinity) return;
  // The sum over keys of p * dp, as in the gradient of the softmax. With dropout, dp is m times the
  // gradient of the kept weight, so the sum is do . out as without.
  double weighted = 0;
  for (int64_t c = 0; c < d_out.columns; ++c)
    weighted += static_cast<double>(d_out(head.b, head.h, i, c)) *
                static_cast<double>(result.out(head.b, head.h, i, c));
  const double of_sink = -std::exp(head.sink(i) - lse) * weighted;
  grad.sink += of_sink;
  if (head.s.query_sink) grad.query_sink.row(i)[0] += of_sink;
  head.each_key(frame, i, [&](size_t n, int64_t j, int64_t diagonal) {
    const typename Head<T>::Product product = head.product(n, i, j, diagonal);
    const double p = std::exp(head.score(product, i, j, diagonal) - lse);
    double dp = 0;
    for (int64_t c = 0; c < d_out.columns; ++c)
      dp += static_cast<double>(d_out(head.b, head.h, i, c)) * head.value(j, diagonal, c);
    const double kept = head.kept(i, j);
    add_value(head, i, j, diagonal, p * kept, d_out, grad);
    add_score(head, n, i, j, diagonal, product, p * (kept * dp - weighted), grad);
  });
}

// Rotates the gradients of rotated rows back, and adds them to the gradients of the unrotated rows.
void turn_back(const std::vector<Rows>& from, std::span<const Sweep> sweeps,
               SideRotation Sweep::*side, int64_t b, int64_t rows, Rows& to) {
  for (size_t n = 0; n < sweeps.size(); ++n)
    for (int64_t i = 0; i < rows; ++i) {
      std::vector<double> x(from[n].row(i), from[n].row(i) + to.columns);
      rotate_row(sweeps[n].*side, b, i, Direction::kBackward, x.data());
      for (int64_t c = 0; c < to.columns; ++c) to.row(i)[c] += x[static_cast<size_t>(c)];
    }
}

}  // namespace

// Runs the heads one after the other: sums over heads then have one order, and the oracle need not
// be fast.
template <class T>
void attend_backward_all(const HostScore<T>& s, const HostAttended<const T>& result,
                         HostAnyView<const T> d_out, const HostGrad<T>& grad, const Context&) {
  std::vector<GradientSum<T>> sums;
  const auto each_view = [](auto&& f) {
    size_t n = 0;
    each_differentiable([&](auto operand) {
      if constexpr (operand.axis(1) != Axis::kNone) f(operand, n++);
    });
  };
  each_view([&](auto operand, size_t) { sums.emplace_back(operand.of(grad)); });
  std::vector<double> sink(grad.sink.size());
  for (int64_t b = 0; b < s.q.batch; ++b)
    for (int64_t h = 0; h < s.q.heads; ++h) {
      const Head<T> head(s, b, h);
      HeadGrad one(s);
      head.each_query([&](const Frame& frame, int64_t i) {
        backward_query(head, frame, i, result, d_out, one);
      });
      turn_back(one.q_turned, s.sweeps, &Sweep::query, b, s.q.rows, one.q);
      if (s.q_imag) turn_back(one.q_imag_turned, s.sweeps, &Sweep::query, b, s.q.rows, one.q_imag);
      turn_back(one.k_turned, s.sweeps, &Sweep::key, b, s.k.rows, one.k);
      each_view([&](auto operand, size_t n) {
        const Rows& rows = operand.of(one);
        sums[n].add(HostView(packed(rows.data.data(), 1, 1, rows.count(), rows.columns)),
                    operand.has(Axis::kBatch) ? b : 0,
                    operand.has(Axis::kKeyHeads) ? head.key_head : h, 0);
      });
      if (!sink.empty()) sink[static_cast<size_t>(h)] += one.sink;
    }
  for (const GradientSum<T>& sum : sums) sum.write();
  for (size_t h = 0; h < sink.size(); ++h) grad.sink[h] = static_cast<T>(sink[h]);
}

template void attend_backward_all(const HostScore<float>&, const HostAttended<const float>&,
                                  HostAnyView<const float>, const HostGrad<float>&, const Context&);
template void attend_backward_all(const HostScore<double>&, const HostAttended<const double>&,
                                  HostAnyView<const double>, const HostGrad<double>&,
                                  const Context&);

}  // namespace sextant::reference
