#include "tests/oracle/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sextant::oracle {
namespace {

constexpr double kUlp = 0x1p-24;
// A weight that is smaller may be flushed to zero.
constexpr double kSmallestWeight = 0x1p-126;

// One pair of a query and a key that it sees.
struct Pair {
  int64_t b, h, key_head, i, j, diagonal;
  const OwnedSweep& sweep;
};

template <class F>
void each_pair(const Problem<double>& p, F&& f) {
  const Score<double> s = p.score();
  for (int64_t b = 0; b < p.q.batch; ++b) {
    for (const Frame& frame : p.frames) {
      if (frame.batch != kEveryBatch && frame.batch != b) continue;
      for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i) {
        for (size_t n = 0; n < s.sweeps.size(); ++n) {
          const Run run = visible_keys(s.sweeps[n], frame, b, i);
          for (int64_t j = run.first; j < run.last; ++j) {
            const int64_t diagonal = s.diagonals.index(frame.distance(i, j));
            for (int64_t h = 0; h < p.q.heads; ++h) {
              if (s.mask && s.mask(b, h, i, j) == 0) continue;
              f(Pair{b, h, h / (p.q.heads / p.k.heads), i, j, diagonal, p.sweeps[n]});
            }
          }
        }
      }
    }
  }
}

int64_t row_of(const TableOf<double>& table, int64_t diagonal) {
  return table.row_at.empty() ? diagonal : table.row_at[static_cast<size_t>(diagonal)];
}

// |table[row, c]|, 0 where there is none.
double magnitude(const TableOf<double>& table, const Pair& at, int64_t c) {
  if (c >= table.rows.columns) return 0;
  return std::abs(table.rows(0, table.rows.heads == 1 ? 0 : at.h, row_of(table, at.diagonal), c));
}

// |x_c| after any turn and its gain, and after the turn back of the other side's gradient.
double turned_magnitude(const Tensor<double>& x, int64_t h, int64_t row, int64_t c, const Pair& at,
                        const Problem<double>& p) {
  for (const Rotation::Pair& pair : at.sweep.rotation.pairs) {
    if (pair.first != c && pair.second != c) continue;
    double apart = 0;
    if (pair.growth != 0) {
      apart = static_cast<double>(
          at.sweep.query_times[static_cast<size_t>(pair.axis * p.q.rows + at.i)] -
          at.sweep.key_times[static_cast<size_t>(pair.axis * p.k.rows + at.j)]);
    }
    return at.sweep.rotation.gain * at.sweep.rotation.gain * std::exp(pair.growth * apart) *
           std::hypot(x(at.b, h, row, pair.first), x(at.b, h, row, pair.second));
  }
  return std::abs(x(at.b, h, row, c));
}

template <class T>
Tensor<T> like(const Tensor<T>& other) {
  return Tensor<T>(other.batch, other.heads, other.rows, other.columns);
}

// Adds to the row of a table's bounds that `at` reads.
void add(Tensor<double>& bounds, const TableOf<double>& table, const Pair& at, int64_t c,
         double x) {
  if (c < bounds.columns) {
    bounds(0, bounds.heads == 1 ? 0 : at.h, row_of(table, at.diagonal), c) += x;
  }
}

// |dO_i| . (|v_j| + |C|)
double value_product(const Problem<double>& p, const Tensor<double>& d_out, const Pair& at) {
  double sum = 0;
  for (int64_t c = 0; c < p.v.columns; ++c) {
    sum += std::abs(d_out(at.b, at.h, at.i, c)) *
           (std::abs(p.v(at.b, at.key_head, at.j, c)) + magnitude(p.on_value, at, c));
  }
  return sum;
}

void scale(Tensor<double>& bounds, double factor) {
  for (double& x : bounds.data) x *= factor;
}

Worst greater(Worst a, Worst b) { return a.ratio >= b.ratio ? std::move(a) : std::move(b); }

}  // namespace

Result<double> result_bounds(const Problem<double>& problem, const Result<double>& exact) {
  const Tensor<double> weights = probabilities(problem, reference_backend());
  Result<double> bounds{like(exact.out), like(exact.lse)};
  each_pair(problem, [&](const Pair& at) {
    const double p = std::max(weights(at.b, at.h, at.i, at.j), kSmallestWeight);
    for (int64_t c = 0; c < bounds.out.columns; ++c) {
      bounds.out(at.b, at.h, at.i, c) += p * (std::abs(problem.v(at.b, at.key_head, at.j, c)) +
                                              magnitude(problem.on_value, at, c));
    }
  });
  scale(bounds.out, 64 * kUlp);
  for (size_t i = 0; i < exact.lse.data.size(); ++i) {
    bounds.lse.data[i] = 4e-6 + 4 * kUlp * std::abs(exact.lse.data[i]);
  }
  return bounds;
}

Gradients<double> gradient_bounds(const Problem<double>& p, const Tensor<double>& d_out) {
  const Tensor<double> weights = probabilities(p, reference_backend());
  const auto weight = [&](const Pair& at) {
    return std::max(weights(at.b, at.h, at.i, at.j), kSmallestWeight);
  };
  Tensor<double> mean(p.q.batch, p.q.heads, p.q.rows, 1);  // sum_l p_il |dO_i| . (|v_l| + |C|)
  Tensor<double> sink_weight(p.q.batch, p.q.heads, p.q.rows, 1);
  std::fill(sink_weight.data.begin(), sink_weight.data.end(), 1.0);
  each_pair(p, [&](const Pair& at) {
    mean(at.b, at.h, at.i, 0) += weight(at) * value_product(p, d_out, at);
    sink_weight(at.b, at.h, at.i, 0) -= weights(at.b, at.h, at.i, at.j);
  });

  Gradients<double> g{like(p.q),
                      like(p.k),
                      like(p.v),
                      like(p.bias.rows),
                      like(p.on_query.rows),
                      like(p.on_key.rows),
                      like(p.on_value.rows),
                      std::vector<double>(p.sink.size())};
  each_pair(p, [&](const Pair& at) {
    for (int64_t c = 0; c < p.v.columns; ++c) {
      const double x = weight(at) * std::abs(d_out(at.b, at.h, at.i, c));
      g.v(at.b, at.key_head, at.j, c) += x;
      add(g.on_value, p.on_value, at, c, x);
    }
    const double d_score = weight(at) * (value_product(p, d_out, at) + mean(at.b, at.h, at.i, 0));
    add(g.bias, p.bias, at, 0, d_score);
    const double e = d_score * std::abs(p.scale);
    for (int64_t c = 0; c < p.q.columns; ++c) {
      g.q(at.b, at.h, at.i, c) +=
          e * (turned_magnitude(p.k, at.key_head, at.j, c, at, p) + magnitude(p.on_query, at, c));
      g.k(at.b, at.key_head, at.j, c) +=
          e * (turned_magnitude(p.q, at.h, at.i, c, at, p) + magnitude(p.on_key, at, c));
      add(g.on_query, p.on_query, at, c, e * std::abs(p.q(at.b, at.h, at.i, c)));
      add(g.on_key, p.on_key, at, c, e * std::abs(p.k(at.b, at.key_head, at.j, c)));
    }
  });
  if (!p.sink.empty()) {
    for (int64_t b = 0; b < p.q.batch; ++b) {
      for (int64_t h = 0; h < p.q.heads; ++h) {
        for (int64_t i = 0; i < p.q.rows; ++i) {
          g.sink[static_cast<size_t>(h)] +=
              128 * kUlp * std::max(sink_weight(b, h, i, 0), kSmallestWeight) * mean(b, h, i, 0);
        }
      }
    }
  }
  for (Tensor<double>* t : {&g.q, &g.k, &g.v, &g.bias, &g.on_query, &g.on_key, &g.on_value}) {
    scale(*t, 128 * kUlp);
  }
  return g;
}

template <class T>
Worst worst(const std::string& name, const std::vector<T>& got, const std::vector<double>& exact,
            const std::vector<double>& bounds) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (got.size() != exact.size()) return {kInfinity, name + ": another size"};
  Worst found;
  for (size_t i = 0; i < got.size(); ++i) {
    const auto x = static_cast<double>(got[i]);
    if (x == exact[i]) continue;
    double ratio = std::abs(x - exact[i]) / bounds[i];
    if (!std::isfinite(ratio)) ratio = kInfinity;
    if (ratio > found.ratio) {
      found = {ratio, name + "[" + std::to_string(i) + "]: expected " + std::to_string(exact[i]) +
                          " within " + std::to_string(bounds[i]) + ", but got " +
                          std::to_string(x)};
    }
  }
  return found;
}

template <class T>
Worst worst(const Result<T>& got, const Result<double>& exact, const Result<double>& bounds) {
  return greater(worst("out", got.out.data, exact.out.data, bounds.out.data),
                 worst("lse", got.lse.data, exact.lse.data, bounds.lse.data));
}

template <class T>
Worst worst(const Gradients<T>& got, const Gradients<double>& exact,
            const Gradients<double>& bounds) {
  Worst found;
  const auto compare = [&](const char* name, const Tensor<T> Gradients<T>::*mine,
                           const Tensor<double> Gradients<double>::*other) {
    found =
        greater(found, worst(name, (got.*mine).data, (exact.*other).data, (bounds.*other).data));
  };
  using G = Gradients<T>;
  using E = Gradients<double>;
  compare("dq", &G::q, &E::q);
  compare("dk", &G::k, &E::k);
  compare("dv", &G::v, &E::v);
  compare("d_bias", &G::bias, &E::bias);
  compare("d_on_query", &G::on_query, &E::on_query);
  compare("d_on_key", &G::on_key, &E::on_key);
  compare("d_on_value", &G::on_value, &E::on_value);
  return greater(found, worst("d_sink", got.sink, exact.sink, bounds.sink));
}

Worst worst_of_float32(const Problem<double>& problem, const Tensor<double>& d_out,
                       const Backend& backend, const Executor& executor) {
  const Problem<float> rounded = problem.as<float>();
  const Problem<double> same = rounded.as<double>();
  const Tensor<float> d_rounded = d_out.as<float>();
  const Tensor<double> d_same = d_rounded.as<double>();

  const Result<double> exact = attend(same, reference_backend());
  const Result<float> got = attend(rounded, backend, executor);
  const Gradients<double> exact_gradients =
      attend_backward(same, exact, d_same, reference_backend());
  const Gradients<float> gradients = attend_backward(rounded, got, d_rounded, backend, executor);
  return greater(worst(got, exact, result_bounds(same, exact)),
                 worst(gradients, exact_gradients, gradient_bounds(same, d_same)));
}

template Worst worst(const std::string&, const std::vector<float>&, const std::vector<double>&,
                     const std::vector<double>&);
template Worst worst(const std::string&, const std::vector<double>&, const std::vector<double>&,
                     const std::vector<double>&);
template Worst worst(const Result<float>&, const Result<double>&, const Result<double>&);
template Worst worst(const Result<double>&, const Result<double>&, const Result<double>&);
template Worst worst(const Gradients<float>&, const Gradients<double>&, const Gradients<double>&);
template Worst worst(const Gradients<double>&, const Gradients<double>&, const Gradients<double>&);

}  // namespace sextant::oracle
