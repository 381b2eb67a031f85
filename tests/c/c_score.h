// A C++ score as a call of the C API, and results that own their memory.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "sextant/attention/score.h"
#include "sextant/c/handles.h"
#include "sextant/sextant.h"
#include "tests/attention/random_score.h"

namespace sextant::testing {

inline sextant_dtype c_dtype(DType dtype) {
  return dtype == DType::kBfloat16  ? SEXTANT_BFLOAT16
         : dtype == DType::kFloat16 ? SEXTANT_FLOAT16
         : dtype == DType::kFloat64 ? SEXTANT_FLOAT64
                                    : SEXTANT_FLOAT32;
}

template <class AView>
sextant_array c_array(const AView& x, DType dtype) {
  return {const_cast<void*>(static_cast<const void*>(x.data)),
          x.batch,
          x.heads,
          x.rows,
          x.columns,
          x.batch_stride,
          x.head_stride,
          x.row_stride,
          x.column_stride,
          c_dtype(dtype)};
}
template <class T>
sextant_array c_array(const AnyView<T>& x) {
  return c_array(x, x.dtype);
}
template <class T>
sextant_array c_array(const View<T>& x) {
  return x ? c_array(x, kDTypeOf<std::remove_const_t<T>>) : sextant_array{};
}

// A score without offsets of phases, dropout and q_imag, which are not in C.
struct CScore {
  sextant_attention attention = {sizeof(sextant_attention)};
  sextant_terms terms = {sizeof(sextant_terms)};
  sextant_layout layout = {sizeof(sextant_layout)};
  std::vector<sextant_frame> frames;
  std::deque<std::vector<sextant_range>> ranges;
  std::deque<sextant_rope> ropes;
  std::vector<sextant_sweep> sweeps;
  std::vector<sextant_axis> axes;

  CScore(const CScore&) = delete;
  explicit CScore(const Score<float>& s) {
    attention.q = c_array(s.q), attention.k = c_array(s.k), attention.v = c_array(s.v);
    attention.scale = s.scale;
    attention.terms = &terms;
    attention.layout = &layout;
    c::each_table(terms, s, [](const char*, sextant_table& table, const auto& rows) {
      table.table = c_array(rows);
    });
    c::each_table(terms, s.row_at, [](const char*, sextant_table& table, const auto& map) {
      if (!map.empty()) table.rows = map.data();
    });
    for (const PositionAxis& axis : s.axes)
      axes.push_back({.query_positions = axis.query_positions,
                      .key_positions = axis.key_positions,
                      .query_batch_stride = axis.query_batch_stride,
                      .key_batch_stride = axis.key_batch_stride,
                      .farthest = axis.distances.farthest,
                      .distances = axis.distances.count,
                      .bias_rows = axis.bias.data(),
                      .on_query_rows = axis.on_query.data()});
    terms.axes = axes.data(), terms.axis_count = std::ssize(axes);
    terms.axis_bias = c_array(s.axis_bias), terms.axis_on_query = c_array(s.axis_on_query);
    terms.table_query = c_array(s.table_query), terms.query_sink = c_array(s.query_sink);
    terms.query_bias = c_array(s.query_bias);
    terms.key_bias = c_array(s.key_bias);
    if (s.mask) {
      terms.mask = s.mask.data;
      const int64_t strides[] = {s.mask.batch_stride, s.mask.head_stride, s.mask.row_stride,
                                 s.mask.column_stride};
      std::copy(std::begin(strides), std::end(strides), terms.mask_strides);
    }
    terms.softcap = s.softcap;
    if (!s.sink.empty()) terms.sink = s.sink.data();
    for (const Frame& f : s.frames)
      frames.push_back(
          {f.batch, f.query_row, f.queries, f.query_position, f.key_row, f.keys, f.key_position});
    for (const Sweep& sweep : s.sweeps) {
      std::vector<sextant_range>& own = ranges.emplace_back();
      const int64_t count =
          sweep.batch_stride == 0 ? s.q.rows : (s.q.batch - 1) * sweep.batch_stride + s.q.rows;
      for (int64_t i = 0; i < count; ++i)
        own.push_back({sweep.key_ranges[i].first, sweep.key_ranges[i].last});
      sweeps.push_back({.query = side(sweep.query),
                        .key = side(sweep.key),
                        .ranges = own.data(),
                        .batch_stride = sweep.batch_stride});
    }
    layout.frames = frames.data(), layout.frame_count = std::ssize(frames);
    layout.sweeps = sweeps.data(), layout.sweep_count = std::ssize(sweeps);
    layout.farthest = s.diagonals.farthest, layout.diagonals = s.diagonals.count;
    layout.pages = s.pages.at, layout.pages_stride = s.pages.batch_stride;
    layout.keys = s.pages.rows;
  }

 private:
  sextant_side side(const SideRotation& from) {
    if (!from.rotation) return {};
    return {
        .rope = &ropes.emplace_back(sextant_rope{std::make_shared<const Rotation>(*from.rotation)}),
        .positions = from.rotary_positions,
        .batch_stride = from.batch_stride,
        .axis_stride = from.axis_stride,
        .row_stride = from.row_stride};
  }
};

// out and lse, float32, of a call in C and in C++.
struct Outputs {
  std::vector<float> out, lse;
  Shape shape, lse_shape;

  explicit Outputs(const Operands<float>& o)
      : shape{o.q.batch, o.q.heads, o.q.rows, o.v.columns},
        lse_shape{o.q.batch, o.q.heads, o.q.rows, 1} {
    lse.assign(static_cast<size_t>(o.q.batch * o.q.heads * o.q.rows), 77);
    out.assign(lse.size() * static_cast<size_t>(o.v.columns), 77);
  }
  Attended<float> views() {
    return {.out = contiguous(out, shape), .lse = contiguous(lse, lse_shape)};
  }
  sextant_array out_array() { return array(out, shape); }
  sextant_array lse_array() { return array(lse, lse_shape); }

  static sextant_array array(std::vector<float>& x, const Shape& s) {
    return sextant_contiguous(x.data(), SEXTANT_FLOAT32, s.batch, s.heads, s.rows, s.columns);
  }
  friend bool operator==(const Outputs& a, const Outputs& b) {
    return a.out == b.out && a.lse == b.lse;
  }
};

}  // namespace sextant::testing
