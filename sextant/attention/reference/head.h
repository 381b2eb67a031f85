// One query head of one batch entry in the oracle: rotated operands in float64, and the equation,
// term by term,
//
//   p = <R q, R k> + q.A[d] + k.B[d]          (or |p + i p'| with q_imag)
//   s = tau(scale w[d] p) + b[d] + r.A[d] + beta_i[d] + c_j
//   o = sum_j e^s m_ij (v + C[d]) / (e^sink + sum_j e^s)
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sextant/attention/host_score.h"
#include "sextant/attention/key_bias.h"
#include "sextant/base/context.h"
#include "sextant/base/hypot.h"

namespace sextant::reference {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows of doubles: the rotated queries or keys of one head, or gradients that are not rotated back
// yet.
struct Rows {
  int64_t columns = 0;
  std::vector<double> data;

  Rows() = default;
  Rows(int64_t rows, int64_t cols)
      : columns(cols), data(static_cast<size_t>(rows) * static_cast<size_t>(cols)) {}
  int64_t count() const { return columns == 0 ? 0 : static_cast<int64_t>(data.size()) / columns; }
  double* row(int64_t i) { return data.data() + i * columns; }
  const double* row(int64_t i) const { return data.data() + i * columns; }
};

enum class Direction { kForward, kBackward };

inline int64_t rotary_position(const SideRotation& side, int64_t b, int axis, int64_t row) {
  return side
      .rotary_positions[b * side.batch_stride + axis * side.axis_stride + row * side.row_stride];
}

// Rotates one row, or rotates it back, which is also the gradient of the rotation. Growth is not
// applied here: only the difference of two rotary positions is certain not to overflow.
inline void rotate_row(const SideRotation& side, int64_t b, int64_t row, Direction direction,
                       double* x) {
  if (!side.rotation) return;
  const Rotation& rotation = *side.rotation;
  for (size_t f = 0; f < rotation.pairs.size(); ++f) {
    const Rotation::Pair& pair = rotation.pairs[f];
    Turns phase = pair.frequency * rotary_position(side, b, pair.axis, row);
    if (!side.offset.empty()) phase = phase + side.offset[f];
    CosSin angle = cos_sin(phase);
    if (direction == Direction::kBackward) angle.sin = -angle.sin;
    const double a = x[pair.first], c = x[pair.second];
    x[pair.first] = rotation.gain * (a * angle.cos - c * angle.sin);
    x[pair.second] = rotation.gain * (a * angle.sin + c * angle.cos);
  }
}

template <class T>
Rows rows_of(const HostAnyView<const T>& x, int64_t b, int64_t h) {
  Rows rows(x.rows, x.columns);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t c = 0; c < x.columns; ++c) rows.row(i)[c] = static_cast<double>(x(b, h, i, c));
  return rows;
}

// Rows of k or v, gathered from its pages.
template <class T>
Rows stored_rows(const HostScore<T>& s, const HostRows<T>& x, int64_t b, int64_t h) {
  Rows rows(key_rows(s), x.columns);
  for (int64_t j = 0; j < key_rows(s); ++j) {
    const StoredRow at = stored_row(s, b, j);
    for (int64_t c = 0; c < x.columns; ++c)
      rows.row(j)[c] = static_cast<double>(x.element(at, h, c));
  }
  return rows;
}

inline Rows rotated(Rows rows, const SideRotation& side, int64_t b) {
  for (int64_t i = 0; rows.columns > 0 && i < rows.count(); ++i) {
    rotate_row(side, b, i, Direction::kForward, rows.row(i));
  }
  return rows;
}

// One query head's rows of a table.
template <class T>
struct HeadTable {
  const Table<T>* table = nullptr;
  int64_t h = 0;

  explicit operator bool() const { return static_cast<bool>(table->rows); }
  int64_t columns() const { return table->rows.columns; }
  int64_t row(int64_t diagonal) const {
    return table->row_at.empty() ? diagonal : table->row_at[static_cast<size_t>(diagonal)];
  }
  double operator()(int64_t diagonal, int64_t column) const {
    const HostView<const T>& rows = table->rows;
    return static_cast<double>(rows(0, rows.heads == 1 ? 0 : h, row(diagonal), column));
  }
};

// One query head of one batch entry.
template <class T>
struct Head {
  const HostScore<T>& s;
  int64_t b, h, key_head;
  std::vector<Rows> q, k, q_imag;  // rotated, one for each sweep
  KeyBiasOrigins origins;
  HeadTable<T> weight, bias, on_query, on_key, on_value;

  Head(const HostScore<T>& score, int64_t batch, int64_t head)
      : s(score),
        b(batch),
        h(head),
        key_head(head / (score.q.heads / score.k.heads)),
        origins(score.key_bias, score.frames, score.sweeps, score.q.rows) {
    each_table([&](auto operand) { operand.of(*this) = {&operand.of(score), head}; });
    for (const Sweep& sweep : s.sweeps) {
      q.push_back(rotated(rows_of(s.q, b, h), sweep.query, b));
      k.push_back(rotated(stored_rows(s, s.k, b, key_head), sweep.key, b));
      if (s.q_imag) q_imag.push_back(rotated(rows_of(s.q_imag, b, h), sweep.query, b));
    }
  }

  // An element of k or v.
  double stored(const HostRows<T>& x, int64_t row, int64_t column) const {
    return static_cast<double>(x.element(stored_row(s, b, row), key_head, column));
  }

  // Calls f(row) for the row of a table of the axes that a query and a key meet on each of them.
  template <class F>
  void each_axis_row(std::span<const int32_t> PositionAxis::*map, int64_t i, int64_t j,
                     F&& f) const {
    for (const PositionAxis& axis : s.axes) {
      const std::span<const int32_t> row_at = axis.*map;
      if (row_at.empty()) continue;
      const int32_t row = row_at[static_cast<size_t>(axis_index(axis, b, i, j))];
      if (row >= 0) f(int64_t{row});
    }
  }
  // The query's element that meets A.
  double of_table_query(int64_t i, int64_t c) const {
    return static_cast<double>(s.table_query ? s.table_query(b, h, i, c) : s.q(b, h, i, c));
  }
  // q . A[d], or r . A[d].
  double table_product(int64_t i, int64_t j, int64_t diagonal) const {
    double sum = 0;
    for (int64_t c = 0; on_query && c < on_query.columns(); ++c)
      sum += of_table_query(i, c) * on_query(diagonal, c);
    if (!s.axis_on_query) return sum;
    const HostView<const T>& rows = s.axis_on_query;
    each_axis_row(&PositionAxis::on_query, i, j, [&](int64_t row) {
      for (int64_t c = 0; c < rows.columns; ++c)
        sum += of_table_query(i, c) * static_cast<double>(rows(0, rows.heads == 1 ? 0 : h, row, c));
    });
    return sum;
  }
  // b[d].
  double distance_bias(int64_t i, int64_t j, int64_t diagonal) const {
    double sum = bias ? bias(diagonal, 0) : 0;
    if (!s.axis_bias) return sum;
    each_axis_row(&PositionAxis::bias, i, j, [&](int64_t row) {
      sum += static_cast<double>(s.axis_bias(0, s.axis_bias.heads == 1 ? 0 : h, row, 0));
    });
    return sum;
  }

  // The factors by which growth multiplies the product of columns c of q_i and k_j: all 1 without
  // growth.
  std::vector<double> growth(size_t n, int64_t i, int64_t j) const {
    std::vector<double> factor(static_cast<size_t>(s.q.columns), 1.0);
    const SideRotation& query = s.sweeps[n].query;
    if (!query.rotation) return factor;
    for (const Rotation::Pair& pair : query.rotation->pairs) {
      if (pair.growth == 0) continue;
      const int64_t apart = rotary_position(query, b, pair.axis, i) -
                            rotary_position(s.sweeps[n].key, b, pair.axis, j);
      const double grown = std::exp(pair.growth * static_cast<double>(apart));
      factor[static_cast<size_t>(pair.first)] = factor[static_cast<size_t>(pair.second)] = grown;
    }
    return factor;
  }

  // p_ij; `size` enters the score: |p| with q_imag, the real part without.
  struct Product {
    double real = 0, imaginary = 0, size = 0;
  };
  Product product(size_t n, int64_t i, int64_t j, int64_t diagonal) const {
    const std::vector<double> grown = growth(n, i, j);
    Product p;
    for (int64_t c = 0; c < s.q.columns; ++c) {
      const double key = grown[static_cast<size_t>(c)] * k[n].row(j)[c];
      p.real += q[n].row(i)[c] * key;
      if (s.q_imag) p.imaginary += q_imag[n].row(i)[c] * key;
    }
    if (!s.table_query) p.real += table_product(i, j, diagonal);
    if (on_key)
      for (int64_t c = 0; c < on_key.columns(); ++c)
        p.real += stored(s.k, j, c) * on_key(diagonal, c);
    p.size = s.q_imag ? hypot(p.real, p.imaginary) : p.real;
    return p;
  }

  // tau(scale w[d] p).
  double capped(const Product& p, int64_t diagonal) const {
    const double x = s.scale * (weight ? weight(diagonal, 0) : 1) * p.size;
    return s.softcap > 0 ? s.softcap * std::tanh(x / s.softcap) : x;
  }
  // tau'(x) at a value of capped().
  double cap_slope(double capped) const {
    const double t = s.softcap > 0 ? capped / s.softcap : 0;
    return (1 - t) * (1 + t);
  }

  // The score s_ij minus origin(i).
  double score(const Product& p, int64_t i, int64_t j, int64_t diagonal) const {
    return capped(p, diagonal) + distance_bias(i, j, diagonal) +
           (s.table_query ? table_product(i, j, diagonal) : 0) +
           (s.query_bias ? static_cast<double>(s.query_bias(b, h, i, diagonal)) : 0) +
           (s.key_bias ? s.key_bias(b, h, j, 0) - origin(i) : 0);
  }

  // m_ij, by which dropout multiplies the weight.
  double kept(int64_t i, int64_t j) const {
    if (!s.dropout) return 1;
    return keeps(s.dropout, b, h, i, j) ? s.dropout.kept_factor() : 0;
  }

  double value(int64_t j, int64_t diagonal, int64_t c) const {
    const double v = stored(s.v, j, c);
    return on_value ? v + on_value(diagonal, c) : v;
  }

  // Calls f(sweep, j, diagonal) for every key that query i of the frame sees.
  template <class F>
  void each_key(const Frame& frame, int64_t i, F&& f) const {
    for (size_t n = 0; n < s.sweeps.size(); ++n) {
      const KeyRange range = visible_keys(s.sweeps[n], frame, b, i);
      for (int64_t j = range.first; j < range.last; ++j)
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

  // The number subtracted from the scores and the lse of query i.
  double origin(int64_t i) const { return origins.at(b, h, i); }
  double sink(int64_t i) const {
    const double sink = sink_of(s, b, h, i);
    return sink == -kInfinity ? sink : sink - origin(i);
  }
};

template <class T>
void attend_all(const HostScore<T>& score, const HostAttended<T>& result, const Context& context);
template <class T>
void attend_backward_all(const HostScore<T>& score, const HostAttended<const T>& result,
                         HostAnyView<const T> d_out, const HostGrad<T>& grad,
                         const Context& context);

}  // namespace sextant::reference
