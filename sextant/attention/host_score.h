// The operands and the plan of one call in one struct, for backends in host memory. Nothing is
// copied.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "sextant/attention/operand_list.h"
#include "sextant/base/workspace.h"

namespace sextant {

// A table with a row for each distance or class of distances: w and b (one column), A, B and C.
template <class T>
struct Table {
  HostView<const T> rows = {};           // [1, 1 or query heads, R, columns]
  std::span<const int32_t> row_at = {};  // diagonal -> row; empty: row = diagonal
};

// Rows of q, k or v. Some pages of k and v may be integers.
template <class T>
struct HostRows : HostAnyView<const T> {
  HostView<const int8_t> numbers;
  HostView<const T> scale;

  HostRows() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): rows without integers are rows
  HostRows(const HostAnyView<const T>& x) : HostAnyView<const T>(x) {}
  explicit HostRows(const AnyView<const T>& x, const Int8Pages<T>& int8 = {})
      : HostAnyView<const T>(x), numbers(int8.numbers), scale(int8.scale) {}

  T element(const StoredRow& at, int64_t head, int64_t column) const {
    if (!at.is_int8()) return (*this)(at.batch, head, at.row, column);
    const int64_t page = at.int8_page();
    return static_cast<T>(numbers(page, head, at.row, column)) *
           scale(page, head, scale.rows == 1 ? 0 : at.row, scale.columns == 1 ? 0 : column);
  }
};

// Valid as long as the operands' memory and the plan are.
template <class T>
struct HostScore {
  HostRows<T> q, k, v;
  Pages pages;
  HostRows<T> q_imag;
  double scale;
  std::span<const Frame> frames;
  std::span<const Sweep> sweeps;
  Diagonals diagonals;
  Table<T> weight, bias, on_query, on_key, on_value;
  std::span<const PositionAxis> axes;
  HostView<const T> axis_bias, axis_on_query, table_query;
  HostView<const T> query_bias;
  HostView<const double> key_bias;
  std::span<const T> sink;
  HostView<const T> query_sink;
  HostView<const uint8_t> mask;
  double softcap;
  Dropout dropout;

  HostScore(const Operands<T>& o, const Plan& plan)
      : pages(plan.pages),
        scale(o.scale),
        frames(plan.frames),
        sweeps(plan.sweeps),
        diagonals(plan.diagonals),
        axes(plan.axes),
        softcap(o.softcap),
        dropout(o.dropout) {
    each_operand([&](auto operand) {
      auto& x = operand.of(*this);
      if constexpr (operand.has(Axis::kRows))
        x = {HostView(operand.of(o)), operand.of(plan.row_at)};
      else
        x = std::remove_reference_t<decltype(x)>(operand.of(o));
    });
    k = HostRows<T>(o.k, o.k_int8);
    v = HostRows<T>(o.v, o.v_int8);
  }
};

// The score of a sink, whichever operand has it; -infinity: none.
template <class T>
double sink_of(const HostScore<T>& score, int64_t b, int64_t h, int64_t query) {
  if (score.query_sink) return static_cast<double>(score.query_sink(b, h, query, 0));
  if (score.sink.empty()) return -std::numeric_limits<double>::infinity();
  return static_cast<double>(score.sink[static_cast<size_t>(h)]);
}

// The index of the distance of a query and a key on an axis.
inline int64_t axis_index(const PositionAxis& axis, int64_t b, int64_t query, int64_t key) {
  return axis.distances.index(axis.query_positions[b * axis.query_batch_stride + query] -
                              axis.key_positions[b * axis.key_batch_stride + key]);
}

template <class T>
int64_t key_rows(const HostScore<T>& score) {
  return score.pages ? score.pages.rows : score.k.rows;
}

// The location of key row `row` of batch entry b in k and v.
template <class T>
StoredRow stored_row(const HostScore<T>& score, int64_t b, int64_t row) {
  if (!score.pages) return {b, row};
  const int64_t page_rows = score.k.rows;
  return {score.pages.at[b * score.pages.batch_stride + row / page_rows], row % page_rows};
}

// The results in memory of the host.
template <class T>
struct HostAttended {
  HostAnyView<T> out;
  HostView<T> lse;
};

template <class T>
HostAttended<T> on_host(const Attended<T>& attended) {
  return {HostAnyView(attended.out), HostView(attended.lse)};
}

// The sum of contributions to a gradient in float64, which write() rounds once.
template <class T>
class GradientSum {
 public:
  GradientSum() = default;
  explicit GradientSum(const HostView<T>& to)
      : to_(to), sum_(to ? static_cast<size_t>(to.batch * to.heads * to.rows * to.columns) : 0) {}

  // Adds rows to those from (batch, head, first) on; all heads may share one.
  template <class N>
  void add(const HostView<N>& rows, int64_t batch, int64_t head, int64_t first) {
    if (!to_) return;
    if (to_.heads == 1) head = 0;
    for (int64_t b = 0; b < rows.batch; ++b)
      for (int64_t h = 0; h < rows.heads; ++h)
        for (int64_t i = 0; i < rows.rows; ++i) {
          double* into = sum_.data() + row(batch + b, head + h, first + i) * to_.columns;
          for (int64_t c = 0; c < to_.columns; ++c)
            into[c] += static_cast<double>(rows(b, h, i, c));
        }
  }

  void write() const {
    for (int64_t b = 0; b < to_.batch && to_; ++b)
      for (int64_t h = 0; h < to_.heads; ++h)
        for (int64_t i = 0; i < to_.rows; ++i)
          for (int64_t c = 0; c < to_.columns; ++c)
            to_(b, h, i, c) =
                static_cast<T>(sum_[static_cast<size_t>(row(b, h, i) * to_.columns + c)]);
  }

 private:
  int64_t row(int64_t b, int64_t h, int64_t i) const { return (b * to_.heads + h) * to_.rows + i; }

  HostView<T> to_;
  std::vector<double> sum_;
};

// The gradients that host backends write, in T. A null view is not computed.
template <class T>
struct HostGrad {
  HostView<T> q = {}, k = {}, v = {}, q_imag = {};
  HostView<T> weight = {}, bias = {}, on_query = {}, on_key = {}, on_value = {};
  HostView<T> axis_bias = {}, axis_on_query = {}, table_query = {}, query_sink = {};
  HostView<T> query_bias = {}, key_bias = {};
  std::span<T> sink = {};
};

// A HostGrad for gradients of any type. Gradients that are stored in 16 bits are computed in a
// buffer of T, which write() rounds once.
template <class T>
class HostGradOf {
 public:
  HostGradOf(const ScoreGrad<T>& to, Workspace& memory);
  const HostGrad<T>& grad() const { return grad_; }
  void write() const;

 private:
  struct Rounded {
    HostView<T> from;
    HostAnyView<T> to;
  };
  HostView<T> bind(const AnyView<T>& to, Workspace& memory);
  static std::span<T> bind(std::span<T> to, Workspace&) { return to; }

  std::vector<Rounded> rounded_;  // filled while grad_ is bound
  HostGrad<T> grad_;
};

}  // namespace sextant
