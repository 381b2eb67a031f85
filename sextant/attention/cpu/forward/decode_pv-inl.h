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

// Prefetches as many rows as are read: in address order if they are contiguous, else in the columns
// that are being read.
template <class Number>
struct RowPrefetch {
  const Number* read;      // the first row that is read
  const std::byte* first;  // the address prefetched beside it
  int64_t rows = 0;        // rows prefetched beside one block of columns
  int64_t row = 0;         // stride in bytes of the prefetched rows
  bool in_order = false;   // whether they are contiguous

  static constexpr int lines(int blocks) {
    constexpr int kColumnBlock = static_cast<int>(kLanes * sizeof(Number));
    return (blocks * kColumnBlock + static_cast<int>(Prefetcher::kLine) - 1) /
           static_cast<int>(Prefetcher::kLine);
  }
  // The policy that prefetches only lines that are being read.
  RowPrefetch nothing() const { return {read, reinterpret_cast<const std::byte*>(read)}; }
  // The first line to prefetch beside a tile whose columns begin at `at`.
  HWY_INLINE const std::byte* start(const Number* at, int) const {
    return first + (at - read) * static_cast<int64_t>(sizeof(Number)) * rows;
  }
  HWY_INLINE int64_t step_of(int lines) const { return in_order ? lines * Prefetcher::kLine : row; }
  HWY_INLINE int64_t step(int blocks) const { return step_of(lines(blocks)); }
};

// The prefetch beside `count` rows from `read` on, the n-th of a stretch.
template <class Number>
RowPrefetch<Number> rows_ahead(const Stretch& rows, const Number* read, int64_t n, int64_t count) {
  if (!rows.next_view) return {read, reinterpret_cast<const std::byte*>(read)};
  const HostAnyView<const float>& x = *rows.next_view;
  const int64_t row = x.row_stride * x.element_size();
  const bool in_order = x.row_stride == x.columns;
  return {read, static_cast<const std::byte*>(rows.next_data) + n * row, in_order ? count : 1, row,
          in_order};
}

// p v and the row sums of p for all rows, into grouped.unit. Values are read in place if their rows
// need no padding; else a few at a time are copied into `copy`, which stays in the L1 cache.
inline HWY_NOINLINE void decode_pv(const DecodeUnit& unit, KeyRange seen, int64_t rows, float* copy,
                                   const GroupedQueries& grouped) {
  const Problem& p = unit.keys.problem;
  const HostRows<float>& v = p.score.v;
  const int64_t blocks = p.width16 / kLanes;
  std::fill_n(grouped.unit.out, round_up(rows, kStrip) * p.width16, 0.0F);
  std::fill_n(grouped.unit.row_sum, round_up(rows, kStrip), 0.0F);
  const bool thin = rows <= kThinRows && blocks <= kThinBlocks;
  const auto multiply_values = [&](KeyRange values, const auto* from, int64_t stride,
                                   const auto& ahead) HWY_ATTR {
    using Number = std::remove_cvref_t<decltype(*from)>;
    for (int64_t row = 0; row < rows; row += kStrip) {
      const int64_t some = std::min(kStrip, rows - row), count = values.last - values.first;
      const float* const panel = grouped.weight_panels + row * kUnit + values.first * kStrip;
      const RightRowsOf<Number> right = {from, stride};
      float* const out = grouped.unit.out + row * p.width16;
      float* const totals = grouped.unit.row_sum + row;
      const RowPrefetch<Number> mine = row == 0 ? ahead : ahead.nothing();
      multiply_and_total<Sum::kAdded>(some, blocks, count, panel, right, out, p.width16, totals,
                                      mine);
    }
  };
  for (int64_t j = seen.first; j < seen.last;) {
    const Stretch stretch = stretch_of(unit, Reads::kValues, j);
    const KeyRange all = {j, std::min(j + stretch.count, seen.last)};
    const bool whole = stretch.at && has_whole_rows(v);
    // Rows that one tile reads are read once; else, and where they are copied, they stay in the L1
    // cache until all tiles have read them.
    const int64_t row_max = thin && whole ? kUnit : unit.ahead;
    with_type(v.dtype, stretch.at, [&](const auto* from) HWY_ATTR {
      for (int64_t count; j < all.last; j += count) {
        count = std::min(row_max, all.last - j);
        if (whole) {
          const auto* const at = from + (j - all.first) * v.row_stride;
          multiply_values({j, j + count}, at, v.row_stride,
                          rows_ahead(stretch, at, j - all.first, count));
        } else {
          copy_some(unit.keys, v, unit.key_head, {j, j + count}, copy);
          const float* const at = copy;
          multiply_values({j, j + count}, at, p.width16, rows_ahead({}, at, 0, count));
        }
      }
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
