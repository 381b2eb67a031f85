// Rows of q and k for gradients, and gradients of turned rows turned back into those of rows.
#if defined(SEXTANT_ATTENTION_CPU_BACKWARD_ROTATE_BACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_BACKWARD_ROTATE_BACK_INL_H_
#undef SEXTANT_ATTENTION_CPU_BACKWARD_ROTATE_BACK_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_BACKWARD_ROTATE_BACK_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/tile/weighted_values-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The rows that panels hold, as they are and turned in some ways.
inline HWY_NOINLINE void unpack_rows(const Problem& p, const float* const* panels,
                                     const float* plain, int64_t rows, WaysSeen ways,
                                     const RowSets& to) {
  const auto unpack = [&](const float* from, float* rows_of) HWY_ATTR {
    for (int64_t i = 0; i < rows; i += kLanes)
      unpack_panel(from + i * p.depth16, kLanes, p.depth16, rows_of + i * p.depth16, p.depth16);
  };
  if (to.plain) unpack(plain, to.plain);
  for (size_t way = 0; way < p.ways.list.size(); ++way)
    if (to.turned[way] != to.plain && ways.has(way)) unpack(panels[way], to.turned[way]);
}

HWY_INLINE bool rows_finite(const Problem& p, const RowSets& rows, int64_t size, WaysSeen ways) {
  bool finite = !rows.plain || all_finite(rows.plain, size);
  for (size_t way = 0; way < p.ways.list.size(); ++way)
    finite = finite && (rows.turned[way] == rows.plain || !ways.has(way) ||
                        all_finite(rows.turned[way], size));
  return finite;
}

// Gradients of rows turned one way, [rows][depth16], become gradients of the rows themselves. unit:
// to whose growth the queries were turned.
inline HWY_NOINLINE void turn_back(const FrameRows& rows, size_t way, int64_t unit, float* panel,
                                   float* factors, float* grads) {
  const Problem& p = rows.problem;
  const SidePhases& phases = rows.phases(way);
  if (!phases.rotation) return;
  for (int64_t i = 0; i < rows.rows; i += kLanes) {
    float* at = grads + i * p.depth16;
    pack_panel(at, p.depth16, 1, std::min(kLanes, rows.rows - i), p.depth16, 1, panel);
    if (p.ways.list[way].grows && rows.side == Side::kQuery) {
      const SidePhases& keys = p.phases.at(rows.block.phases, way).key;
      growth_factors(*phases.rotation,
                     phases.origins.data() + (rows.first + i) / kLanes * phases.axes,
                     keys.origins.data() + unit * keys.axes, p.depth16, factors);
      for (int64_t c = 0; c < p.depth16; ++c)
        store(mul(set(factors[c]), load(panel + c * kLanes)), panel + c * kLanes);
    }
    turn_panel(phases, rows.first + i, Rotate::kBack, panel);
    unpack_panel(panel, kLanes, p.depth16, at, p.depth16);
  }
}

// to += factor * x, of a multiple of kLanes floats. fresh: as if `to` held zeros, whatever it holds.
inline HWY_NOINLINE void add_scaled(int64_t count, float factor, const float* x, bool fresh,
                                    float* to) {
  const Lanes times = set(factor), zero = set(0);
  for (int64_t n = 0; n < count; n += kLanes)
    store(mul_add(load(x + n), times, fresh ? zero : load(to + n)), to + n);
}

// Writes a row, or adds it to one.
HWY_INLINE void give_row(const float* from, int64_t columns, bool adds, float* to,
                         int64_t column_stride) {
  int64_t c = 0;
  if (column_stride == 1)
    for (; c + kLanes <= columns; c += kLanes)
      store(adds ? add(load(to + c), load(from + c)) : load(from + c), to + c);
  for (; c < columns; ++c) to[c * column_stride] = adds ? to[c * column_stride] + from[c] : from[c];
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
