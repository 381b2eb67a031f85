// Packing of the rows of q, k and v into the layouts that tiles read.
#if defined(SEXTANT_ATTENTION_CPU_PREPARE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_PREPARE_INL_H_
#undef SEXTANT_ATTENTION_CPU_PREPARE_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_PREPARE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "sextant/attention/cpu/panels.h"
#include "sextant/attention/cpu/tile/bf16x3-inl.h"
#include "sextant/attention/cpu/tile/int8-inl.h"
#include "sextant/attention/cpu/tile/pack-inl.h"
#include "sextant/attention/cpu/tile/pairs-inl.h"
#include "sextant/attention/cpu/visibility.h"
#include "sextant/base/simd/amx.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Rows [first, first + rows) of one side of a frame; first is a multiple of kLanes.
struct FrameRows {
  const Problem& problem;
  const BatchFrame& block;
  Side side;
  int64_t first, rows;

  int64_t row() const {  // the first of them in the operand
    return first + (side == Side::kQuery ? block.frame.query_row : block.frame.key_row);
  }
  // The location of the i-th row; keys may be in pages.
  StoredRow stored(int64_t i) const {
    if (side == Side::kQuery) return {block.frame.batch, row() + i};
    return stored_row(problem.score, block.frame.batch, row() + i);
  }
  bool is_int8(int64_t i) const { return stored(i).is_int8(); }
  // The address of the i-th row, which is not integers.
  const void* at(const HostAnyView<const float>& x, int64_t head, int64_t i) const {
    const StoredRow found = stored(i);
    return x.at(found.batch, head, found.row);
  }
  // The same for integers.
  Int8Rows int8_at(const HostRows<float>& x, int64_t head, int64_t i) const {
    const StoredRow found = stored(i);
    const bool by_row = x.scale.rows > 1;
    return {x.numbers.at(found.int8_page(), head, found.row), x.numbers.row_stride,
            x.scale.at(found.int8_page(), head, by_row ? found.row : 0),
            by_row ? x.scale.row_stride : 0, x.scale.columns > 1};
  }
  // The address of sixteen rows from the i-th on, which may be beyond the last of these rows; null
  // if the operand ends before, or if they are integers.
  const void* soon(const HostAnyView<const float>& x, int64_t head, int64_t i) const {
    const int64_t count = side == Side::kQuery ? x.rows : key_rows(problem.score);
    return row() + i + kLanes <= count && !is_int8(i) ? at(x, head, i) : nullptr;
  }
  // The number of rows from the i-th on that are contiguous.
  int64_t together(int64_t i) const { return std::min(rows - i, in_page(i)); }
  // The same, counting rows beyond the last.
  int64_t in_page(int64_t i) const {
    const HostScore<float>& s = problem.score;
    if (side == Side::kQuery || !s.pages) return std::numeric_limits<int64_t>::max();
    return s.k.rows - (row() + i) % s.k.rows;
  }
  const SidePhases& phases(size_t rotation) const {
    const FramePhases& both = problem.phases.at(block.phases, rotation);
    return side == Side::kQuery ? both.query : both.key;
  }
};

// Prefetch distance in rows. The hardware prefetcher does not follow rows that are read sixteen at
// a time.
inline constexpr int64_t kRowsAhead = 2 * kLanes;

// Packs one panel of integers, some columns at a time.
inline HWY_NOINLINE void pack_int8_panel(Int8Rows from, int64_t count, int64_t columns,
                                         float factor, float* panel) {
  constexpr int64_t kSome = 4 * kLanes;
  HWY_ALIGN float some[kLanes * kSome];
  for (int64_t c = 0; c < columns; c += kSome) {
    const int64_t width = std::min(kSome, columns - c);
    copy_int8_rows(from, count, width, some);
    pack_panel(some, round_up(width, kLanes), 1, count, width, factor, panel + c * kLanes);
    from.at += kSome;
    if (from.by_column) from.scale += kSome;
  }
}

// Packs one panel: `count` rows of x from the i-th on, which are contiguous (see kPageUnit), times
// factor. ahead: see pack_panel().
HWY_INLINE void pack_panel_of(const FrameRows& rows, const HostRows<float>& x, int64_t head,
                              int64_t i, int64_t count, float factor, float* panel,
                              const void* ahead = nullptr) {
  if (rows.is_int8(i))
    return pack_int8_panel(rows.int8_at(x, head, i), count, x.columns, factor, panel);
  with_type(x.dtype, rows.at(x, head, i), [&](const auto* from) HWY_ATTR {
    pack_panel(from, x.row_stride, x.column_stride, count, x.columns, factor, panel,
               static_cast<decltype(from)>(ahead));
  });
}

// Rows of the type of the computation.
HWY_INLINE HostRows<float> rows_of(const HostView<const float>& x) {
  return HostRows<float>(AnyView<const float>(View<const float>(x)));
}

// Packs all panels of those rows of x, times factor: plain, and in some rotations.
HWY_INLINE void pack_rows(const FrameRows& rows, const HostRows<float>& x, int64_t head,
                          float factor, const Panels& to, RotationsSeen rotations = kAllRotations) {
  static_assert(kPageUnit % kLanes == 0);
  const Problem& p = rows.problem;
  for (int64_t i = 0; i < rows.rows; i += kLanes) {
    const int64_t count = std::min(kLanes, rows.rows - i), at = i * p.depth16;
    const auto pack = [&](float* panel) HWY_ATTR {
      pack_panel_of(rows, x, head, i, count, factor, panel, rows.soon(x, head, i + kRowsAhead));
    };
    if (to.plain) pack(to.plain + at);
    for (size_t rotation = 0; rotation < p.rotations.list.size(); ++rotation) {
      if (!rotations.has(rotation)) continue;
      float* panel = to.rotated[rotation] + at;
      if (to.rotated[rotation] != to.plain) {
        if (to.plain)
          std::copy_n(to.plain + at, kLanes * p.depth16, panel);
        else
          pack(panel);
        rotate_panel(rows.phases(rotation), rows.first + i, Rotate::kForth, panel);
      }
      if (to.pairs) pair_panel(panel, p.depth16, to.pairs[rotation] + at / 2);
    }
  }
}

// The factors of growth between the origins of a tile of queries and a unit of keys (phases.h), one
// for each column of q.
HWY_INLINE void growth_factors(const Rotation& rotation, const int64_t* query_origin,
                               const int64_t* key_origin, int64_t depth16, float* factors) {
  constexpr double kMostExponent = 64;  // hidden keys may get any finite factor
  std::fill_n(factors, depth16, 1.0F);
  for (const Rotation::Pair& pair : rotation.pairs) {
    const double apart = static_cast<double>(query_origin[pair.axis] - key_origin[pair.axis]);
    factors[pair.first] = factors[pair.second] =
        static_cast<float>(std::exp(std::min(pair.growth * apart, kMostExponent)));
  }
}

// Multiplies panels of queries by the growth factors of a unit of keys. pairs: the result in pairs,
// or null.
HWY_INLINE void grow_queries(const FrameRows& queries, size_t rotation, int64_t unit,
                             const float* from, float* factors, float* to, float* pairs = nullptr) {
  const Problem& p = queries.problem;
  const FramePhases& phases = p.phases.at(queries.block.phases, rotation);
  for (int64_t i = 0; i < queries.rows; i += kLanes) {
    growth_factors(*phases.query.rotation,
                   phases.query.origins.data() + (queries.first + i) / kLanes * phases.query.axes,
                   phases.key.origins.data() + unit * phases.key.axes, p.depth16, factors);
    for (int64_t c = 0; c < p.depth16; ++c) {
      const int64_t at = i * p.depth16 + c * kLanes;
      store(mul(set(factors[c]), load(from + at)), to + at);
    }
    const int64_t at = i * p.depth16;
    if (pairs) pair_panel(to + at, p.depth16, pairs + at / 2);
  }
}

// A row-major matrix whose rows are padded to whole lanes: the operand itself if its rows are.
struct Matrix {
  const float* data;
  int64_t stride;
};

// Copies rows times factor, padded with zeros to columns16.
template <class Number>  // float, Bfloat16 or Float16
HWY_NOINLINE void copy_rows(const Number* from, int64_t row_stride, int64_t column_stride,
                            int64_t rows, int64_t columns, float factor, float* to) {
  const int64_t columns16 = round_up(columns, kLanes);
  const V times = hn::Set(F32(), factor);
  for (int64_t i = 0; i < rows; ++i, from += row_stride, to += columns16) {
    int64_t c = 0;
    if (column_stride == 1)
      for (; c + kVectorLanes <= columns; c += kVectorLanes)
        hn::StoreU(hn::Mul(times, load_part(from + c)), F32(), to + c);
    for (; c < columns; ++c) to[c] = factor * to_float(from[c * column_stride]);
    std::fill(to + columns, to + columns16, 0.0F);
  }
}

// Copies rows [some.first, some.last) of x, times factor.
HWY_INLINE void copy_some(const FrameRows& rows, const HostRows<float>& x, int64_t head,
                          KeyRange some, float* to, float factor = 1) {
  const int64_t columns16 = round_up(x.columns, kLanes);
  for (int64_t i = some.first, count; i < some.last; i += count, to += count * columns16) {
    count = std::min(rows.together(i), some.last - i);
    if (rows.is_int8(i)) {
      copy_int8_rows(rows.int8_at(x, head, i), count, x.columns, to);  // keys have no factor
      continue;
    }
    with_type(x.dtype, rows.at(x, head, i), [&](const auto* from) HWY_ATTR {
      copy_rows(from, x.row_stride, x.column_stride, count, x.columns, factor, to);
    });
  }
}

// Whether rows need no padding.
inline bool has_whole_rows(const HostAnyView<const float>& x) {
  return x.column_stride == 1 && x.columns % kLanes == 0;
}

HWY_INLINE Matrix whole_rows(const FrameRows& rows, const HostRows<float>& x, int64_t head,
                             float* copy) {
  if (x.dtype == DType::kFloat32 && has_whole_rows(x) && rows.together(0) == rows.rows &&
      !rows.is_int8(0))
    return {static_cast<const float*>(rows.at(x, head, 0)), x.row_stride};
  copy_some(rows, x, head, {0, rows.rows}, copy);
  return {copy, round_up(x.columns, kLanes)};
}

// The same for rows that many queries read: they are also copied if they are not contiguous,
// because rows some KB apart map to few sets of the caches and are evicted (4 KB apart, 8 heads of
// 128, the forward pass took 1.4 times as long on a Zen 3 core).
HWY_INLINE Matrix near_rows(const FrameRows& rows, const HostRows<float>& x, int64_t head,
                            float* copy) {
  const int64_t columns16 = round_up(x.columns, kLanes);
  if (x.row_stride == columns16) return whole_rows(rows, x, head, copy);
  copy_some(rows, x, head, {0, rows.rows}, copy);
  return {copy, columns16};
}

// Writes `count` rows, which are `width16` apart, to a head's rows from `row` on.
inline HWY_NOINLINE void write_rows(const float* from, int64_t width16,
                                    const HostAnyView<float>& to, int64_t batch, int64_t head,
                                    int64_t row, int64_t count) {
  to.visit([&](const auto& view) HWY_ATTR {
    using Number = std::remove_pointer_t<decltype(view.data)>;
    Number* at = view.at(batch, head, row);
    for (int64_t i = 0; i < count; ++i, from += width16, at += view.row_stride) {
      int64_t c = 0;
      if constexpr (std::is_same_v<Number, float>)
        if (view.column_stride == 1)
          for (; c + kLanes <= view.columns; c += kLanes) store(load(from + c), at + c);
      for (; c < view.columns; ++c) at[c * view.column_stride] = narrowed<Number>(from[c]);
    }
  });
}

// Splits the rows of panels into terms, in the rotations that are seen: queries row by row, keys
// panel by panel. False if some values do not fit.
template <int kCount>
HWY_NOINLINE bool split_panels(const Panels& panels, Side side, int64_t rows, int64_t columns16,
                               RotationsSeen rotations, size_t rotation_count) {
  const int64_t pairs = amx::paired(columns16);
  bool all_fit = true;
  for (size_t rotation = 0; rotation < rotation_count; ++rotation) {
    if (!rotations.has(rotation)) continue;
    for (int64_t i = 0; i < rows; i += kLanes) {
      const float* const panel = panels.rotated[rotation] + i * columns16;
      float* const to = panels.terms[rotation] + i * pairs;
      Fit fit;
      if (side == Side::kKey) {
        fit = pair_panel_columns<kCount>(panel, columns16, to, panels.term_step);
      } else {
        unpack_panel(panel, kLanes, columns16, panels.lines, columns16);
        fit =
            pair_columns<kCount>(panels.lines, columns16, kLanes, columns16, to, panels.term_step);
      }
      all_fit &= kCount == 1 || fit.all();
    }
  }
  return all_fit;
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
