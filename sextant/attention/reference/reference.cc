// The score equation, term by term, in float64, with no thought of speed: the oracle. Every backend
// is tested against this file, and this file against finite differences and the official
// implementations.
#include <cmath>
#include <limits>
#include <vector>

#include "sextant/attention/attend.h"

namespace sextant {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows of doubles: the turned queries or keys of one head, or gradients that are still turned.
struct Rows {
  int64_t columns = 0;
  std::vector<double> data;

  Rows(int64_t rows, int64_t cols)
      : columns(cols), data(static_cast<size_t>(rows) * static_cast<size_t>(cols)) {}
  double* row(int64_t i) { return data.data() + i * columns; }
  const double* row(int64_t i) const { return data.data() + i * columns; }
};

enum class Way { kTurn, kTurnBack };

int64_t time_of(const Turn& turn, int64_t b, int axis, int64_t row) {
  return turn.times[b * turn.batch_stride + axis * turn.axis_stride + row * turn.row_stride];
}

// One row turned, or turned back, which is also the gradient of turning. Growth is not applied
// here: only the difference of two times is sure not to overflow.
void turn_row(const Turn& turn, int64_t b, int64_t row, Way way, double* x) {
  if (!turn.rotation) return;
  const Rotation& rotation = *turn.rotation;
  for (size_t f = 0; f < rotation.pairs.size(); ++f) {
    const Rotation::Pair& pair = rotation.pairs[f];
    Turns phase = pair.speed * time_of(turn, b, pair.axis, row);
    if (!turn.offset.empty()) phase = phase + turn.offset[f];
    CosSin angle = cos_sin(phase);
    if (way == Way::kTurnBack) angle.sin = -angle.sin;
    const double a = x[pair.first], c = x[pair.second];
    x[pair.first] = rotation.gain * (a * angle.cos - c * angle.sin);
    x[pair.second] = rotation.gain * (a * angle.sin + c * angle.cos);
  }
}

template <class T>
Rows turned(View<const T> x, const Turn& turn, int64_t b, int64_t h) {
  Rows rows(x.rows, x.columns);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t c = 0; c < x.columns; ++c) rows.row(i)[c] = static_cast<double>(x(b, h, i, c));
    turn_row(turn, b, i, Way::kTurn, rows.row(i));
  }
  return rows;
}

// Rows of one table as one query head sees them.
template <class T>
struct HeadTable {
  const Table<T>& table;
  int64_t h;

  explicit operator bool() const { return static_cast<bool>(table.rows); }
  int64_t columns() const { return table.rows.columns; }
  int64_t row(int64_t diagonal) const {
    return table.row_at.empty() ? diagonal : table.row_at[static_cast<size_t>(diagonal)];
  }
  double operator()(int64_t diagonal, int64_t column) const {
    return static_cast<double>(table.rows(0, table.rows.heads == 1 ? 0 : h, row(diagonal), column));
  }
};

// One query head of one batch entry.
template <class T>
struct Head {
  const Score<T>& s;
  int64_t b, h, key_head;
  std::vector<Rows> q, k;  // turned, one for each sweep
  HeadTable<T> bias, on_query, on_key, on_value;

  Head(const Score<T>& score, int64_t batch, int64_t head)
      : s(score),
        b(batch),
        h(head),
        key_head(head / (score.q.heads / score.k.heads)),
        bias{score.bias, head},
        on_query{score.on_query, head},
        on_key{score.on_key, head},
        on_value{score.on_value, head} {
    for (const Sweep& sweep : s.sweeps) {
      q.push_back(turned(s.q, sweep.query, b, h));
      k.push_back(turned(s.k, sweep.key, b, key_head));
    }
  }

  // What growth makes of the product of columns c of q_i and k_j: all 1 without growth.
  std::vector<double> growth(size_t n, int64_t i, int64_t j) const {
    std::vector<double> factor(static_cast<size_t>(s.q.columns), 1.0);
    const Turn& query = s.sweeps[n].query;
    if (!query.rotation) return factor;
    for (const Rotation::Pair& pair : query.rotation->pairs) {
      if (pair.growth == 0) continue;
      const int64_t apart =
          time_of(query, b, pair.axis, i) - time_of(s.sweeps[n].key, b, pair.axis, j);
      const double grown = std::exp(pair.growth * static_cast<double>(apart));
      factor[static_cast<size_t>(pair.first)] = factor[static_cast<size_t>(pair.second)] = grown;
    }
    return factor;
  }

  double score(size_t n, int64_t i, int64_t j, int64_t diagonal) const {
    const std::vector<double> grown = growth(n, i, j);
    double x = 0;
    for (int64_t c = 0; c < s.q.columns; ++c)
      x += grown[static_cast<size_t>(c)] * q[n].row(i)[c] * k[n].row(j)[c];
    if (on_query)
      for (int64_t c = 0; c < on_query.columns(); ++c)
        x += static_cast<double>(s.q(b, h, i, c)) * on_query(diagonal, c);
    if (on_key)
      for (int64_t c = 0; c < on_key.columns(); ++c)
        x += static_cast<double>(s.k(b, key_head, j, c)) * on_key(diagonal, c);
    x *= s.scale;
    if (bias) x += bias(diagonal, 0);
    return x;
  }

  double value(int64_t j, int64_t diagonal, int64_t c) const {
    const double v = static_cast<double>(s.v(b, key_head, j, c));
    return on_value ? v + on_value(diagonal, c) : v;
  }

  // Calls f(sweep, j, diagonal) for every key that query i of the frame sees.
  template <class F>
  void each_key(const Frame& frame, int64_t i, F&& f) const {
    for (size_t n = 0; n < s.sweeps.size(); ++n) {
      const Run run = visible_keys(s.sweeps[n], frame, b, i);
      for (int64_t j = run.first; j < run.last; ++j)
        if (!s.mask || s.mask(b, h, i, j) != 0) f(n, j, s.diagonals.index(frame.distance(i, j)));
    }
  }

  // Calls f(frame, i) for every query in a frame of this batch entry.
  template <class F>
  void each_query(F&& f) const {
    for (const Frame& frame : s.frames)
      if (frame.batch == kEveryBatch || frame.batch == b)
        for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i) f(frame, i);
  }

  double sink() const {
    return s.sink.empty() ? -kInfinity : static_cast<double>(s.sink[static_cast<size_t>(h)]);
  }
};

template <class T>
void attend_query(const Head<T>& head, const Frame& frame, int64_t i, const Attended<T>& result) {
  double most = head.sink();
  std::vector<double> scores;
  head.each_key(frame, i, [&](size_t n, int64_t j, int64_t diagonal) {
    scores.push_back(head.score(n, i, j, diagonal));
    // A NaN score must stay the greatest, whichever side std::max would drop.
    most = std::isnan(scores.back()) || scores.back() > most ? scores.back() : most;
  });
  if (most == -kInfinity) return;  // sees nothing: zeros and -infinity are already there
  double sum = std::exp(head.sink() - most);
  std::vector<double> out(static_cast<size_t>(head.s.v.columns));
  size_t at = 0;
  head.each_key(frame, i, [&](size_t, int64_t j, int64_t diagonal) {
    const double p = std::exp(scores[at++] - most);
    sum += p;
    for (size_t c = 0; c < out.size(); ++c)
      out[c] += p * head.value(j, diagonal, static_cast<int64_t>(c));
  });
  for (size_t c = 0; c < out.size(); ++c)
    result.out(head.b, head.h, i, static_cast<int64_t>(c)) = static_cast<T>(out[c] / sum);
  result.lse(head.b, head.h, i, 0) = static_cast<T>(most + std::log(sum));
}

template <class T>
void attend_all(const Score<T>& s, const Attended<T>& result, const Executor& executor) {
  executor.run(s.q.batch * s.q.heads, [&](int64_t task, int) {
    const Head<T> head(s, task / s.q.heads, task % s.q.heads);
    for (int64_t i = 0; i < s.q.rows; ++i) {
      result.lse(head.b, head.h, i, 0) = static_cast<T>(-kInfinity);
      for (int64_t c = 0; c < s.v.columns; ++c) result.out(head.b, head.h, i, c) = 0;
    }
    head.each_query([&](const Frame& frame, int64_t i) { attend_query(head, frame, i, result); });
  });
}

// Gradients of one query head, before anything shared is summed.
struct HeadGrad {
  Rows q, k, v;
  Rows bias, on_query, on_key, on_value;
  std::vector<Rows> q_turned, k_turned;  // one for each sweep
  double sink = 0;

  template <class T>
  explicit HeadGrad(const Score<T>& s)
      : q(s.q.rows, s.q.columns),
        k(s.k.rows, s.k.columns),
        v(s.v.rows, s.v.columns),
        bias(s.bias.rows.rows, s.bias.rows.columns),
        on_query(s.on_query.rows.rows, s.on_query.rows.columns),
        on_key(s.on_key.rows.rows, s.on_key.rows.columns),
        on_value(s.on_value.rows.rows, s.on_value.rows.columns),
        q_turned(s.sweeps.size(), q),
        k_turned(s.sweeps.size(), k) {}
};

// What one pair (i, j) of weight p and score gradient ds adds to the gradients.
template <class T>
void add_pair(const Head<T>& head, size_t n, int64_t i, int64_t j, int64_t diagonal, double p,
              double ds, View<const T> d_out, HeadGrad& grad) {
  const Score<T>& s = head.s;
  const double e = s.scale * ds;
  for (int64_t c = 0; c < s.v.columns; ++c) {
    const double g = p * static_cast<double>(d_out(head.b, head.h, i, c));
    grad.v.row(j)[c] += g;
    if (head.on_value) grad.on_value.row(head.on_value.row(diagonal))[c] += g;
  }
  const std::vector<double> grown = head.growth(n, i, j);
  for (int64_t c = 0; c < s.q.columns; ++c) {
    const double e_grown = e * grown[static_cast<size_t>(c)];
    grad.q_turned[n].row(i)[c] += e_grown * head.k[n].row(j)[c];
    grad.k_turned[n].row(j)[c] += e_grown * head.q[n].row(i)[c];
  }
  if (head.bias) grad.bias.row(head.bias.row(diagonal))[0] += ds;
  if (head.on_query)
    for (int64_t c = 0; c < head.on_query.columns(); ++c) {
      grad.q.row(i)[c] += e * head.on_query(diagonal, c);
      grad.on_query.row(head.on_query.row(diagonal))[c] +=
          e * static_cast<double>(s.q(head.b, head.h, i, c));
    }
  if (head.on_key)
    for (int64_t c = 0; c < head.on_key.columns(); ++c) {
      grad.k.row(j)[c] += e * head.on_key(diagonal, c);
      grad.on_key.row(head.on_key.row(diagonal))[c] +=
          e * static_cast<double>(s.k(head.b, head.key_head, j, c));
    }
}

template <class T>
void backward_query(const Head<T>& head, const Frame& frame, int64_t i,
                    const Attended<const T>& result, View<const T> d_out, HeadGrad& grad) {
  const double lse = static_cast<double>(result.lse(head.b, head.h, i, 0));
  if (lse == -kInfinity) return;
  double weighted = 0;  // sum over keys of p * dp, which the softmax's gradient subtracts
  for (int64_t c = 0; c < d_out.columns; ++c)
    weighted += static_cast<double>(d_out(head.b, head.h, i, c)) *
                static_cast<double>(result.out(head.b, head.h, i, c));
  grad.sink -= std::exp(head.sink() - lse) * weighted;
  head.each_key(frame, i, [&](size_t n, int64_t j, int64_t diagonal) {
    const double p = std::exp(head.score(n, i, j, diagonal) - lse);
    double dp = 0;
    for (int64_t c = 0; c < d_out.columns; ++c)
      dp += static_cast<double>(d_out(head.b, head.h, i, c)) * head.value(j, diagonal, c);
    add_pair(head, n, i, j, diagonal, p, p * (dp - weighted), d_out, grad);
  });
}

// Turns the gradients of turned rows back, into those of the rows.
void turn_back(const std::vector<Rows>& from, const std::vector<Sweep>& sweeps, Turn Sweep::*side,
               int64_t b, int64_t rows, Rows& to) {
  for (size_t n = 0; n < sweeps.size(); ++n)
    for (int64_t i = 0; i < rows; ++i) {
      std::vector<double> x(from[n].row(i), from[n].row(i) + to.columns);
      turn_row(sweeps[n].*side, b, i, Way::kTurnBack, x.data());
      for (int64_t c = 0; c < to.columns; ++c) to.row(i)[c] += x[static_cast<size_t>(c)];
    }
}

// Sums over whatever shares the operand, in float64, and writes once at the end.
template <class T>
class Sum {
 public:
  explicit Sum(View<T> to) : to_(to), sum_(to ? to.batch * to.heads * to.rows : 0, to.columns) {}
  void add(int64_t b, int64_t h, const Rows& x) {
    if (!to_) return;
    double* into =
        sum_.row(((to_.batch == 1 ? 0 : b) * to_.heads + (to_.heads == 1 ? 0 : h)) * to_.rows);
    for (size_t e = 0; e < x.data.size(); ++e) into[e] += x.data[e];
  }
  void write() const {
    if (!to_) return;
    int64_t at = 0;
    for (int64_t b = 0; b < to_.batch; ++b)
      for (int64_t h = 0; h < to_.heads; ++h)
        for (int64_t i = 0; i < to_.rows; ++i, ++at)
          for (int64_t c = 0; c < to_.columns; ++c)
            to_(b, h, i, c) = static_cast<T>(sum_.row(at)[c]);
  }

 private:
  View<T> to_;
  Rows sum_;
};

// One head after the other: sums over heads then have one order, and the oracle need not be fast.
template <class T>
void attend_backward_all(const Score<T>& s, const Attended<const T>& result, View<const T> d_out,
                         const ScoreGrad<T>& grad, const Executor&) {
  Sum<T> q(grad.q), k(grad.k), v(grad.v);
  Sum<T> bias(grad.bias), on_query(grad.on_query), on_key(grad.on_key), on_value(grad.on_value);
  std::vector<double> sink(grad.sink.size());
  for (int64_t b = 0; b < s.q.batch; ++b)
    for (int64_t h = 0; h < s.q.heads; ++h) {
      const Head<T> head(s, b, h);
      HeadGrad one(s);
      head.each_query([&](const Frame& frame, int64_t i) {
        backward_query(head, frame, i, result, d_out, one);
      });
      turn_back(one.q_turned, s.sweeps, &Sweep::query, b, s.q.rows, one.q);
      turn_back(one.k_turned, s.sweeps, &Sweep::key, b, s.k.rows, one.k);
      q.add(b, h, one.q);
      k.add(b, head.key_head, one.k);
      v.add(b, head.key_head, one.v);
      bias.add(0, h, one.bias);
      on_query.add(0, h, one.on_query);
      on_key.add(0, h, one.on_key);
      on_value.add(0, h, one.on_value);
      if (!sink.empty()) sink[static_cast<size_t>(h)] += one.sink;
    }
  for (const Sum<T>* sum : {&q, &k, &v, &bias, &on_query, &on_key, &on_value}) sum->write();
  for (size_t h = 0; h < sink.size(); ++h) grad.sink[h] = static_cast<T>(sink[h]);
}

}  // namespace

const Backend& reference_backend() {
  static const Backend backend{
      .name = "reference",
      .description = "float64 inside, naive, one term after the other: the oracle",
      .attend_f32 = attend_all<float>,
      .attend_backward_f32 = attend_backward_all<float>,
      .attend_f64 = attend_all<double>,
      .attend_backward_f64 = attend_backward_all<double>,
  };
  return backend;
}

}  // namespace sextant
