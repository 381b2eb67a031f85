// The operands and the plan of one call in one struct, for backends in host memory. Nothing is
// copied.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/attention/score.h"
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
  HostView<const T> query_bias;
  HostView<const double> key_bias;
  std::span<const T> sink;
  HostView<const uint8_t> mask;
  double softcap;
  Dropout dropout;

  HostScore(const Operands<T>& o, const Plan& plan)
      : q(o.q),
        k(o.k, o.k_int8),
        v(o.v, o.v_int8),
        pages(plan.pages),
        q_imag(o.q_imag),
        scale(o.scale),
        frames(plan.frames),
        sweeps(plan.sweeps),
        diagonals(plan.diagonals),
        weight{HostView(o.weight), plan.row_at.weight},
        bias{HostView(o.bias), plan.row_at.bias},
        on_query{HostView(o.on_query), plan.row_at.on_query},
        on_key{HostView(o.on_key), plan.row_at.on_key},
        on_value{HostView(o.on_value), plan.row_at.on_value},
        query_bias(o.query_bias),
        key_bias(o.key_bias),
        sink(o.sink),
        mask(o.mask),
        softcap(o.softcap),
        dropout(o.dropout) {}
};

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

// The gradients that host backends write, in T. A null view is not computed.
template <class T>
struct HostGrad {
  HostView<T> q = {}, k = {}, v = {}, q_imag = {};
  HostView<T> weight = {}, bias = {}, on_query = {}, on_key = {}, on_value = {};
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

  std::vector<Rounded> rounded_;  // filled while grad_ is bound
  HostGrad<T> grad_;
};

}  // namespace sextant
