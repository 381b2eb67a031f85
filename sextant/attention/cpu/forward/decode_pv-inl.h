// Values of one unit weighted by few queries, of all heads of a group at once. Each sum has the
// order that multiply() gives it.
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_DECODE_PV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_PV_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_PV_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_DECODE_PV_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "sextant/attention/cpu/forward/decode_rows-inl.h"
#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// While rows are read, asks for as many that are read soon: in the order in which they lie, if they
// lie one behind the other, or else for the columns that are being read.
template <class Number>
struct RowPrefetch {
  const Number* read;      // the first row that is read
  const std::byte* first;  // what is asked for beside it
  int64_t rows = 0;        // whose lines are asked for before those beside the next columns
  int64_t row = 0;         // bytes from a row that is asked for to the next
  bool in_order = false;   // as they lie

  static constexpr int lines(int blocks) {
    constexpr int kColumnBlock = static_cast<int>(kLanes * sizeof(Number));
    return (blocks * kColumnBlock + static_cast<int>(Prefetcher::kLine) - 1) /
           static_cast<int>(Prefetcher::kLine);
  }
  // But what is read anyhow.
  RowPrefetch nothing() const { return {read, reinterpret_cast<const std::byte*>(read)}; }
  // Beside the first row of a tile whose columns begin at `at`.
  HWY_INLINE const std::byte* start(const Number* at, int) const {
    return first + (at - read) * static_cast<int64_t>(sizeof(Number)) * rows;
  }
  HWY_INLINE int64_t step_of(int lines) const { return in_order ? lines * Prefetcher::kLine : row; }
  HWY_INLINE int64_t step(int blocks) const { return step_of(lines(blocks)); }
};

// Of `count` rows from `read` on, the n-th of a stretch.
template <class Number>
RowPrefetch<Number> rows_ahead(const Stretch& rows, const Number* read, int64_t n, int64_t count) {
  if (!rows.soon_of) return {read, reinterpret_cast<const std::byte*>(read)};
  const AnyView<const float>& x = *rows.soon_of;
  const int64_t row = x.row_stride * x.element_size();
  const bool in_order = x.row_stride == x.columns;
  return {read, static_cast<const std::byte*>(rows.soon_at) + n * row, in_order ? count : 1, row,
          in_order};
}

// What a tile of kRows rows of weights from kFirst on, of kAll that read the same, asks for of
// that: its share of lines.
template <int kFirst, int kRows, int kAll, class Number>
struct ShareOfRowsAhead {
  const RowPrefetch<Number>& all;

  static constexpr int lines(int blocks, int rows) {
    return RowPrefetch<Number>::lines(blocks) * rows / kAll;
  }
  static constexpr int lines(int blocks) {
    return lines(blocks, kFirst + kRows) - lines(blocks, kFirst);
  }
  HWY_INLINE const std::byte* start(const Number* at, int blocks) const {
    return all.start(at, blocks) + all.rows * lines(blocks, kFirst) * Prefetcher::kLine;
  }
  HWY_INLINE int64_t step(int blocks) const { return all.step_of(lines(blocks)); }
};

// Values mixed by kRows rows of weights, some of which may be none, `at_once` values at a time.
// Tiles of four rows and four blocks, for g++ finds where their sums lie with few instructions.
template <int kRows, class Number>
HWY_NOINLINE void decode_pv_some(int64_t at_once, int64_t count, int64_t blocks, const float* panel,
                                 RightRowsOf<Number> values, float* out, float* totals,
                                 RowPrefetch<Number> ahead) {
  constexpr int kTile = 4;
  using std::integral_constant;
  const int64_t width16 = blocks * kLanes;
  for (int64_t n = 0; n < count; n += at_once) {
    const int64_t depth = std::min(at_once, count - n);
    const auto pv_tile = [&](int64_t j, auto some, auto first, auto sums) HWY_ATTR {
      multiply_tile<Sum::kAdded, kTile, some()>(
          depth, LeftColumns{panel + first(), kStrip}, from_block(values, j),
          out + first() * width16 + j * kLanes, width16,
          ShareOfRowsAhead<first(), kTile, kRows, Number>{ahead}, Nothing(), sums);
    };
    int64_t j = 0;
    const auto by = [&](auto some) HWY_ATTR {
      for (; blocks - j >= some(); j += some()) {
        if (j == 0)
          pv_tile(j, some, integral_constant<int, 0>(), Totals{totals});
        else
          pv_tile(j, some, integral_constant<int, 0>(), NoTotals());
        if constexpr (kRows > kTile) pv_tile(j, some, integral_constant<int, kTile>(), NoTotals());
      }
    };
    by(integral_constant<int, 4>());
    by(integral_constant<int, 2>());
    by(integral_constant<int, 1>());
    panel += at_once * kStrip;
    values.data += at_once * values.depth_step;
    ahead.read = values.data;
    ahead.first += at_once * ahead.row;
  }
}

// So many values tiles read one after the other. Few: so lines have come long before the first tile
// reads them, and most of the L1 cache is for those that come. (Eight heads of 128 columns took a
// Zen 5 0.95 of the time by 32.)
inline int64_t values_at_once(const Problem& p) {
  constexpr int64_t kBytes = 4096;
  const int64_t row = std::max<int64_t>(p.width16 * p.score.v.element_size(), 1);
  return std::clamp<int64_t>(round_down(kBytes / row, kStrip), kStrip, 8 * kStrip);
}

// Values mixed by the weights of all rows, and the sums of weights, into joined.unit. Those that
// lie as they are mixed are read there; else a few are brought into `copy` just before, the next
// ones in their place, for so it stays in the L1 cache.
inline HWY_NOINLINE void decode_pv(const DecodeUnit& unit, KeyRange seen, int64_t rows, float* copy,
                                   const GroupedQueries& grouped) {
  const Problem& p = unit.keys.problem;
  const AnyView<const float>& v = p.score.v;
  const bool whole = has_whole_rows(v);
  const int64_t blocks = p.width16 / kLanes;
  std::fill_n(grouped.unit.out, round_up(rows, kStrip) * p.width16, 0.0F);
  std::fill_n(grouped.unit.row_sum, round_up(rows, kStrip), 0.0F);
  const bool thin = rows <= kThinRows && blocks <= kThinBlocks;
  // Of rows that lie apart tiles do better that read more of them, at fewer columns.
  const bool in_steps =
      kVectors == 1 && rows > kThinRows && blocks > 0 && whole && v.row_stride == v.columns;
  const int64_t at_once = values_at_once(p);
  const auto mix = [&](KeyRange values, const auto* from, int64_t stride,
                       const auto& ahead) HWY_ATTR {
    using Number = std::remove_cvref_t<decltype(*from)>;
    for (int64_t row = 0; row < rows; row += kStrip) {
      const int64_t some = std::min(kStrip, rows - row), count = values.last - values.first;
      const float* const panel = grouped.weight_panels + row * kUnit + values.first * kStrip;
      const RightRowsOf<Number> right = {from, stride};
      float* const out = grouped.unit.out + row * p.width16;
      float* const totals = grouped.unit.row_sum + row;
      const RowPrefetch<Number> mine = row == 0 ? ahead : ahead.nothing();
      if constexpr (kVectors == 1)
        if (in_steps) {
          if (some <= kStrip / 2)
            decode_pv_some<kStrip / 2>(at_once, count, blocks, panel, right, out, totals, mine);
          else
            decode_pv_some<kStrip>(at_once, count, blocks, panel, right, out, totals, mine);
          continue;
        }
      multiply_and_total<Sum::kAdded>(some, blocks, count, panel, right, out, p.width16, totals,
                                      mine);
    }
  };
  // Rows that one tile reads are not read again; else they stay in the L1 cache until all tiles
  // have.
  const int64_t row_max = thin || (in_steps && rows <= kStrip) ? kUnit : unit.ahead;
  for (int64_t j = seen.first; j < seen.last;) {
    const Stretch stretch = stretch_of(unit, Reads::kValues, j);
    const KeyRange all = {j, std::min(j + stretch.count, seen.last)};
    with_type(v.format, stretch.at, [&](const auto* from) HWY_ATTR {
      for (int64_t count; j < all.last; j += count) {
        count = std::min(row_max, all.last - j);
        if (whole) {
          const auto* const at = from + (j - all.first) * v.row_stride;
          mix({j, j + count}, at, v.row_stride,
              rows_ahead(stretch, at, j - all.first, in_steps ? at_once : count));
        } else {
          copy_some(unit.keys, v, unit.key_head, {j, j + count}, copy);
          const float* const at = copy;
          mix({j, j + count}, at, p.width16, rows_ahead({}, at, 0, count));
        }
      }
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
