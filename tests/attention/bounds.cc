#include "tests/attention/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "sextant/attention/reference/head.h"

namespace sextant::oracle {
namespace {

using Head = reference::Head<double>;

constexpr double kUlp = 0x1p-24;

// A query, a key that it sees, the attention weight p of the two, and dropout's factor m.
struct Pair {
  const Head& head;
  size_t sweep;
  int64_t i, j, diagonal;
  double p, m;
};

// Calls f for every pair of every head.
template <class F>
void each_pair(const Score<double>& score, const Result<double>& exact, double least_weight,
               F&& f) {
  const HostScore<double> host(score, score);
  for (int64_t b = 0; b < score.q.batch; ++b) {
    for (int64_t h = 0; h < score.q.heads; ++h) {
      const Head head(host, b, h);
      head.each_query([&](const Frame& frame, int64_t i) {
        head.each_key(frame, i, [&](size_t n, int64_t j, int64_t diagonal) {
          const double s = head.score(head.product(n, i, j, diagonal), i, j, diagonal);
          const double p = std::exp(s - exact.lse(b, h, i, 0));
          f(Pair{head, n, i, j, diagonal, std::max(p, least_weight), head.kept(i, j)});
        });
      });
    }
  }
}

double magnitude(const reference::HeadTable<double>& table, int64_t diagonal, int64_t c) {
  return table && c < table.columns() ? std::abs(table(diagonal, c)) : 0;
}

// w_ij of column c.
double value_magnitude(const Pair& at, int64_t c) {
  return at.m * (std::abs(at.head.s.v(at.head.b, at.head.key_head, at.j, c)) +
                 magnitude(at.head.on_value, at.diagonal, c));
}

// |dO_i| . w_ij
double value_product(const Pair& at, const HostAnyView<const double>& d_out) {
  double sum = 0;
  for (int64_t c = 0; c < d_out.columns; ++c) {
    sum += std::abs(d_out(at.head.b, at.head.h, at.i, c)) * value_magnitude(at, c);
  }
  return sum;
}

// x| of a rotated row, as it enters the gradient of the other side before the inverse rotation:
// both columns of a pair are bounded by the pair's length times the gain.
std::vector<double> turned_magnitudes(const reference::Rows& rows, int64_t row,
                                      const SideRotation& side) {
  std::vector<double> x(rows.row(row), rows.row(row) + rows.columns);
  for (double& element : x) element = std::abs(element);
  if (!side.rotation) return x;
  for (const Rotation::Pair& pair : side.rotation->pairs) {
    const auto a = static_cast<size_t>(pair.first), c = static_cast<size_t>(pair.second);
    x[a] = x[c] = side.rotation->gain * std::hypot(x[a], x[c]);
  }
  return x;
}

// Adds x to the bounds of the table row at the pair's distance.
void add(Tensor<double>& bounds, const reference::HeadTable<double>& table, const Pair& at,
         int64_t c, double x) {
  if (table && c < table.columns()) {
    bounds(0, bounds.heads == 1 ? 0 : at.head.h, table.row(at.diagonal), c) += x;
  }
}

// Calls f(element of the row that meets A, element of A, bounds of A's element, column) for each
// product with A.
template <class F>
void each_table_product(const Pair& at, Gradients<double>* g, F&& f) {
  const Head& head = at.head;
  const HostScore<double>& s = head.s;
  double none = 0;
  for (int64_t c = 0; head.on_query && c < head.on_query.columns(); ++c)
    f(head.of_table_query(at.i, c), head.on_query(at.diagonal, c),
      g ? g->on_query(0, g->on_query.heads == 1 ? 0 : head.h, head.on_query.row(at.diagonal), c)
        : none,
      c);
  const HostView<const double>& rows = s.axis_on_query;
  if (!rows) return;
  head.each_axis_row(&PositionAxis::on_query, at.i, at.j, [&](int64_t row) {
    const int64_t h = rows.heads == 1 ? 0 : head.h;
    for (int64_t c = 0; c < rows.columns; ++c)
      f(head.of_table_query(at.i, c), rows(0, h, row, c), g ? g->axis_on_query(0, h, row, c) : none,
        c);
  });
}

// |q| . |A[d]|, or |r| . |A[d]|.
double table_product(const Pair& at) {
  double sum = 0;
  each_table_product(at, nullptr,
                     [&](double x, double a, double&, int64_t) { sum += std::abs(x * a); });
  return sum;
}

// Adds to the bounds of A and of q or r, given a bound of the gradient of their product.
void add_query_tables(const Pair& at, double e, Gradients<double>& g) {
  Tensor<double>& query = at.head.s.table_query ? g.table_query : g.q;
  each_table_product(at, &g, [&](double x, double a, double& bound, int64_t c) {
    query(at.head.b, at.head.h, at.i, c) += e * std::abs(a);
    bound += e * std::abs(x);
  });
}

// Adds to the bounds of the operands of the score, given d_score, a bound of the score's gradient.
void add_score(const Pair& at, double d_score, Gradients<double>& g) {
  const Head& head = at.head;
  const HostScore<double>& s = head.s;
  const int64_t b = head.b, h = head.h, key_head = head.key_head;
  const Sweep& sweep = s.sweeps[at.sweep];
  const auto k = turned_magnitudes(head.k[at.sweep], at.j, sweep.key);
  const auto q = turned_magnitudes(head.q[at.sweep], at.i, sweep.query);
  std::vector<double> q_imag(q.size());
  if (s.q_imag) q_imag = turned_magnitudes(head.q_imag[at.sweep], at.i, sweep.query);
  const std::vector<double> grown = head.growth(at.sweep, at.i, at.j);

  double product = 0;  // |<q, k>| with all terms of one sign
  const bool outside = static_cast<bool>(s.table_query);
  if (!outside) product += table_product(at);
  for (int64_t c = 0; c < s.q.columns; ++c) {
    const auto n = static_cast<size_t>(c);
    product += grown[n] * (q[n] + q_imag[n]) * k[n] +
               std::abs(s.k(b, key_head, at.j, c)) * magnitude(head.on_key, at.diagonal, c);
  }
  add(g.bias, head.bias, at, 0, d_score);
  if (s.axis_bias)
    head.each_axis_row(&PositionAxis::bias, at.i, at.j, [&](int64_t row) {
      g.axis_bias(0, g.axis_bias.heads == 1 ? 0 : h, row, 0) += d_score;
    });
  if (outside) add_query_tables(at, d_score, g);
  if (s.query_bias) g.query_bias(b, h, at.i, at.diagonal) += d_score;
  if (s.key_bias) g.key_bias(b, h, at.j, 0) += d_score;
  add(g.weight, head.weight, at, 0, d_score * std::abs(s.scale) * product);

  double e =
      d_score * std::abs(s.scale) * (head.weight ? magnitude(head.weight, at.diagonal, 0) : 1);
  // The gradient of a modulus |z| has the direction of z, whose relative error grows as |z|
  // shrinks.
  if (s.q_imag) e *= 1 + product / head.product(at.sweep, at.i, at.j, at.diagonal).size;
  if (!outside) add_query_tables(at, e, g);
  for (int64_t c = 0; c < s.q.columns; ++c) {
    const auto n = static_cast<size_t>(c);
    g.q(b, h, at.i, c) += e * grown[n] * k[n];
    g.k(b, key_head, at.j, c) +=
        e * (grown[n] * (q[n] + q_imag[n]) + magnitude(head.on_key, at.diagonal, c));
    if (s.q_imag) g.q_imag(b, h, at.i, c) += e * grown[n] * k[n];
    add(g.on_key, head.on_key, at, c, e * std::abs(s.k(b, key_head, at.j, c)));
  }
}

void multiply(Tensor<double>& bounds, double factor) {
  for (double& x : bounds.data) x *= factor;
}

Worst greater(Worst a, Worst b) { return a.ratio >= b.ratio ? std::move(a) : std::move(b); }

}  // namespace

double longest(const AnyView<const double>& rows) {
  const HostAnyView x(rows);
  double most = 0;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.rows; ++i) {
        double sum = 0;
        for (int64_t c = 0; c < x.columns; ++c) sum += x(b, h, i, c) * x(b, h, i, c);
        most = std::max(most, std::sqrt(sum));
      }
  return most;
}

Result<double> result_bounds(const Score<double>& score, const Result<double>& exact,
                             double least_weight) {
  Result<double> bounds(score);
  each_pair(score, exact, least_weight, [&](const Pair& at) {
    for (int64_t c = 0; c < bounds.out.columns; ++c) {
      bounds.out(at.head.b, at.head.h, at.i, c) += at.p * value_magnitude(at, c);
    }
  });
  multiply(bounds.out, 64 * kUlp);
  for (size_t i = 0; i < exact.lse.data.size(); ++i) {
    bounds.lse.data[i] = 4e-6 + 4 * kUlp * std::abs(exact.lse.data[i]);
  }
  return bounds;
}

Gradients<double> gradient_bounds(const Score<double>& score, const Result<double>& exact,
                                  const AnyView<const double>& from_above, double least_weight) {
  const HostAnyView d_out(from_above);
  Tensor<double> mean(score.q.batch, score.q.heads, score.q.rows, 1);  // sum_l p_il |dO_i| . w_il
  each_pair(score, exact, least_weight, [&](const Pair& at) {
    mean(at.head.b, at.head.h, at.i, 0) += at.p * value_product(at, d_out);
  });
  Gradients<double> g(score);
  each_pair(score, exact, least_weight, [&](const Pair& at) {
    const int64_t b = at.head.b, h = at.head.h;
    for (int64_t c = 0; c < d_out.columns; ++c) {
      const double x = at.p * at.m * std::abs(d_out(b, h, at.i, c));
      g.v(b, at.head.key_head, at.j, c) += x;
      add(g.on_value, at.head.on_value, at, c, x);
    }
    add_score(at, at.p * (value_product(at, d_out) + mean(b, h, at.i, 0)), g);
  });
  for (int64_t n = 0; n < static_cast<int64_t>(mean.data.size()); ++n) {
    if (score.sink.empty() && !score.query_sink) break;
    const int64_t i = n % mean.rows, h = n / mean.rows % mean.heads, b = n / mean.rows / mean.heads;
    const double sink = sink_of(HostScore<double>(score, score), b, h, i);
    const double p = std::exp(sink - exact.lse.data[static_cast<size_t>(n)]);
    const double bound = std::max(p, least_weight) * mean.data[static_cast<size_t>(n)];
    if (score.query_sink)
      g.query_sink(b, h, i, 0) += bound;
    else
      g.sink(0, 0, 0, h) += bound;
  }
  Gradients<double>::each([&](const char*, auto member) { multiply(g.*member, 128 * kUlp); });
  return g;
}

template <class T>
Worst worst(const std::string& name, AnyView<const T> of_backend, View<const double> of_reference,
            View<const double> of_errors) {
  const HostAnyView got(of_backend);
  const HostView exact(of_reference), bounds(of_errors);
  Worst found;
  for (int64_t b = 0; b < exact.batch; ++b) {
    for (int64_t h = 0; h < exact.heads; ++h) {
      for (int64_t i = 0; i < exact.rows; ++i) {
        for (int64_t c = 0; c < exact.columns; ++c) {
          const auto x = static_cast<double>(got(b, h, i, c));
          const double y = exact(b, h, i, c);
          if (x == y || (std::isnan(x) && std::isnan(y))) continue;
          double ratio = std::abs(x - y) / bounds(b, h, i, c);
          if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();
          if (ratio <= found.ratio) continue;
          found.ratio = ratio;
          found.where = name + "[" + std::to_string(b) + ", " + std::to_string(h) + ", " +
                        std::to_string(i) + ", " + std::to_string(c) + "]: expected " +
                        std::to_string(y) + ", but got " + std::to_string(x);
        }
      }
    }
  }
  return found;
}

Worst worst_of_float32(const Score<float>& score, const AnyView<const float>& d_out,
                       const Score<double>& same, const AnyView<const double>& d_same,
                       const Backend& backend, const Executor& executor) {
  const Result<double> exact = attend(same, reference_backend());
  const Result<float> result = attend(score, backend, executor);
  const Result<double> bounds = result_bounds(same, exact);
  Worst found = greater(
      worst<float>("out", std::as_const(result.out).view(), exact.out.view(), bounds.out.view()),
      worst<float>("lse", std::as_const(result.lse).view(), exact.lse.view(), bounds.lse.view()));

  const auto exact_gradients = attend_backward(same, exact, d_same, reference_backend());
  const auto gradients = attend_backward(score, result, d_out, backend, executor);
  const auto gradients_bounds = gradient_bounds(same, exact, d_same);
  std::vector<Tensor<double> Gradients<double>::*> members;
  Gradients<double>::each([&](const char*, auto member) { members.push_back(member); });
  size_t n = 0;
  Gradients<float>::each([&](const char* name, auto member) {
    const auto of_double = members[n++];
    found = greater(found, worst<float>(name, std::as_const(gradients.*member).view(),
                                        (exact_gradients.*of_double).view(),
                                        (gradients_bounds.*of_double).view()));
  });
  return found;
}

template Worst worst(const std::string&, AnyView<const float>, View<const double>,
                     View<const double>);
template Worst worst(const std::string&, AnyView<const double>, View<const double>,
                     View<const double>);

}  // namespace sextant::oracle
