// The products of the backward pass by tiles of AMX: of a block of queries with a unit of keys,
//
//   s = q k^T      dp = do v^T      dv^T += do^T p      dk^T += q^T ds      dq = ds k
//
// Gradients of keys and values grow with columns for rows, so that weights and score gradients, which are the right
// sides then, are paired as they lie.
#if defined(SEXTANT_ATTENTION_CPU_BACKWARD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_BACKWARD_TILES_INL_H_
#undef SEXTANT_ATTENTION_CPU_BACKWARD_TILES_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_BACKWARD_TILES_INL_H_
#endif

#include <algorithm>
#include <array>

#include "sextant/attention/amx.h"
#include "sextant/attention/cpu/backward.h"
#include "sextant/attention/cpu/collect_grads-inl.h"
#include "sextant/attention/cpu/parts-inl.h"
#include "sextant/attention/cpu/prepare-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

inline constexpr int kThreeParts = 3;
inline constexpr int64_t kHalves = kBlock / kAmxRows;
// A half of a block's queries are the rows of a product, or a step of its sums.
static_assert(kAmxRows == amx::kDepth);

// A unit's keys, in every way, and values. False if some do not fit.
inline HWY_NOINLINE bool put_unit_in_parts(const Problem& p, int64_t rows, const Panels& keys,
                                           const RowSets& key_rows, const float* values,
                                           const BackwardTiled& to) {
  const size_t ways = p.ways.list.size();
  bool fit = split_panels<kThreeParts>(keys, Side::kKey, rows, p.depth16, kEveryWay, ways);
  for (size_t way = 0; way < ways; ++way)
    pair_lines<kThreeParts>(rows, p.depth16, to.key_lines[way], p.depth16, to.key_step,
                            [&](int64_t j)
                                HWY_ATTR { return key_rows.turned[way] + j * p.depth16; });
  for (int64_t j = 0; j < rows; j += kLanes)
    fit &= pair_panel_columns<kThreeParts>(values + j * p.width16, p.width16,
                                           to.values + j * amx::paired(p.width16), to.value_step)
               .all();
  for (size_t way = 0; way < ways; ++way)
    std::fill_n(to.key_sums[way], p.depth16 * kScoreRow, 0.0F);
  std::fill_n(to.value_sums, p.width16 * kScoreRow, 0.0F);
  return fit;
}

// Of eight numbers and eight others, or zeros, those from the p-th on that a vector holds.
HWY_INLINE V load_eights(const float* some, const float* others, int64_t p) {
  const F32 d;
#if HWY_TARGET != HWY_SCALAR  // which has no halves
  if constexpr (kPart == 16) {
    const hn::Half<F32> half;
    return hn::Combine(d, others ? hn::LoadU(half, others) : hn::Zero(half), hn::LoadU(half, some));
  }
#endif
  const float* const from = p < kStrip ? some : others;
  return from ? hn::LoadU(d, from + p % kStrip) : hn::Zero(d);
}

// Up to kBlock rows, as they are and across. False if some do not fit.
inline HWY_NOINLINE bool put_rows_in_parts(Matrix x, int64_t rows, int64_t columns16, float* to,
                                           int64_t to_step, float* across, int64_t across_step,
                                           float* panels) {
  const bool fit = pair_columns<kThreeParts>(x.data, x.stride, rows, columns16, to, to_step).all();
  for (int64_t i = 0; i < rows; i += kLanes)
    pack_panel(x.data + i * x.stride, x.stride, 1, std::min(kLanes, rows - i), columns16, 1,
               panels + i * columns16);
  constexpr int64_t kRow = kBlock / 2;
  for (int64_t i = 0; i < rows; i += amx::kDepth) {
    const float* const first = panels + i * columns16;
    const float* const second = i + kLanes < rows ? first + kLanes * columns16 : nullptr;
    for (int64_t c = 0; c < columns16; ++c)
      for (int64_t p = 0; p < kLanes; p += kPart) {
        const auto part_of = [&](int64_t strip) HWY_ATTR {
          return load_eights(first + c * kLanes + strip * kStrip,
                             second ? second + c * kLanes + strip * kStrip : nullptr, p);
        };
        put_pairs(split<kThreeParts>(part_of(0)), split<kThreeParts>(part_of(1)),
                  across + c * kRow + i / 2 + p, across_step);
      }
  }
  return fit;
}

// Columns of a unit that each half of a block sees.
using Halves = std::array<Run, kHalves>;
HWY_INLINE Halves halves_of(const Band& band) {
  constexpr int64_t kStrips = kAmxRows / kStrip;
  Halves halves = {};
  for (int64_t n = 0; n < band.strip_count(); ++n) {
    Run& half = halves[static_cast<size_t>(n / kStrips)];
    half = span(half, band.strip(n));
  }
  return halves;
}

// How many halves from the h-th on see the same.
HWY_INLINE int64_t alike(const Halves& halves, int64_t h) {
  const auto first = halves.begin() + h;
  return std::find_if(first, halves.end(), [&](Run run) { return !(run == *first); }) - first;
}

// Rows in parts times panels in parts: to[kBlock][kScoreRow], in the columns that each half sees.
HWY_INLINE void multiply_panels(const Halves& halves, int64_t columns16, const float* rows,
                                int64_t row_step, const float* panels, int64_t panel_step,
                                float* to) {
  const int64_t pairs = amx::paired(columns16);
  for (int64_t h = 0, next; h < kHalves; h = next) {
    const Run run = halves[static_cast<size_t>(h)];
    next = h + alike(halves, h);
    if (empty(run)) continue;
    amx::multiply({kThreeParts,
                   (next - h) * kAmxRows / kLanes,
                   (run.last - run.first) / kLanes,
                   2 * pairs / amx::kDepth,
                   {rows + h * kAmxRows * pairs, row_step, pairs},
                   {panels + run.first * pairs, panel_step, kLanes, kLanes * pairs},
                   to + h * kAmxRows * kScoreRow + run.first,
                   kScoreRow,
                   false});
  }
}

// sums += x^T lines, across. lines: [rows][kScoreRow] in pairs; x: across.
HWY_INLINE void add_across(const Halves& halves, int64_t columns16, const float* x, int64_t x_step,
                           const float* lines, int64_t line_step, float* sums) {
  constexpr int64_t kRow = kBlock / 2;
  for (int64_t h = 0, steps; h < kHalves; h += steps) {
    const Run run = halves[static_cast<size_t>(h)];
    steps = alike(halves, h);
    if (empty(run)) continue;
    amx::multiply({kThreeParts,
                   columns16 / kLanes,
                   (run.last - run.first) / kLanes,
                   steps,
                   {x + h * kLanes, x_step, kRow},
                   {lines + h * kLanes * kScoreRow + run.first, line_step, kScoreRow, kLanes},
                   sums + run.first,
                   kScoreRow,
                   true});
  }
}

// Two strips from the first on, whose lines of a block these are: in pairs of queries, in `columns`. kLooks: false if
// some are infinite or NaN.
template <bool kLooks>
HWY_INLINE bool pair_two_strips(int64_t first, Run columns, const float* lines, float* to,
                                int64_t part_step) {
  Greatest seen;
  const float* line = lines + first * kStrip * kScoreRow;
  float* at = to + first / 2 * kStrip * kScoreRow;
  for (int64_t i = 0; i < kStrip; ++i, line += kScoreRow, at += kScoreRow)
    for (int64_t j = columns.first; j < columns.last; j += kPart) {
      const V x = load_part(line + j), y = load_part(line + kStrip * kScoreRow + j);
      if constexpr (kLooks) {
        seen.look(x);
        seen.look(y);
      }
      put_pairs(split<kThreeParts>(x), split<kThreeParts>(y), at + j, part_step);
    }
  return seen.finite();
}

// Their lines in pairs of keys, [kBlock][kPairRow]. False if some line's greatest does not fit.
HWY_INLINE bool pair_rows_of_two_strips(int64_t first, Run columns, const float* lines, float* to,
                                        int64_t part_step) {
  bool fit = true;
  const Run all = {round_down(columns.first, amx::kDepth), round_up(columns.last, amx::kDepth)};
  for (int64_t i = first * kStrip; i < (first + 2) * kStrip; ++i) {
    Greatest seen;
    pair_line<kThreeParts>(lines + i * kScoreRow, columns, all, to + i * kPairRow, part_step,
                           [&](V x) HWY_ATTR { seen.look(x); });
    fit = fit && seen.fits();
  }
  return fit;
}

// Zeros for two strips that there are not.
HWY_INLINE void pair_no_strips(int64_t first, Run columns, float* to, int64_t part_step) {
  for (int n = 0; n < kThreeParts; ++n)
    for (int64_t i = first / 2 * kStrip; i < (first / 2 + 1) * kStrip; ++i)
      std::fill(to + n * part_step + i * kScoreRow + columns.first,
                to + n * part_step + i * kScoreRow + columns.last, 0.0F);
}

// Score gradients of a block in both ways, two strips from the first on. False if some do not fit.
inline HWY_NOINLINE bool put_grads_in_parts(int64_t first, Run columns, const float* lines,
                                            const BackwardTiled& to) {
  pair_two_strips<false>(first, columns, lines, to.grads, to.line_step);
  return pair_rows_of_two_strips(first, columns, lines, to.grad_rows, to.row_step);
}
inline HWY_NOINLINE bool put_weights_in_parts(int64_t first, Run columns, const float* lines,
                                              const BackwardTiled& to) {
  return pair_two_strips<true>(first, columns, lines, to.weights, to.line_step);
}

// to = lines times keys: [kBlock][depth16].
HWY_INLINE void multiply_key_lines(const Halves& halves, int64_t columns16, const float* rows,
                                   int64_t row_step, const float* keys, int64_t key_step,
                                   float* to) {
  for (int64_t h = 0, next; h < kHalves; h = next) {
    const Run run = halves[static_cast<size_t>(h)];
    next = h + alike(halves, h);
    const int64_t rows_of = (next - h) * kAmxRows;
    float* const at = to + h * kAmxRows * columns16;
    if (empty(run)) {
      std::fill_n(at, rows_of * columns16, 0.0F);
      continue;
    }
    const int64_t first = round_down(run.first, amx::kDepth);
    amx::multiply({kThreeParts,
                   rows_of / kLanes,
                   columns16 / kLanes,
                   (round_up(run.last, amx::kDepth) - first) / amx::kDepth,
                   {rows + h * kAmxRows * kPairRow + first / 2, row_step, kPairRow},
                   {keys + first / 2 * columns16, key_step, columns16, kLanes},
                   at,
                   columns16,
                   false});
  }
}

// to[rows][columns16] += sums, which lie across. panel: [columns16][kLanes].
inline HWY_NOINLINE void add_sums_across(const float* sums, int64_t rows, int64_t columns16,
                                         float* panel, float* to) {
  for (int64_t j = 0; j < rows; j += kLanes) {
    unpack_panel(sums + j, kScoreRow, columns16, panel, columns16);
    float* const at = to + j * columns16;
    for (int64_t n = 0; n < kLanes * columns16; n += kLanes)
      store(add(load(at + n), load(panel + n)), at + n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
