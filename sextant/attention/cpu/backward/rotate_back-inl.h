// Rows of q and k as factors of gradients, and gradients of rotated rows rotated back.
#if defined(SEXTANT_ATTENTION_CPU_BACKWARD_ROTATE_BACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_BACKWARD_ROTATE_BACK_INL_H_
#undef SEXTANT_ATTENTION_CPU_BACKWARD_ROTATE_BACK_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_BACKWARD_ROTATE_BACK_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Unpacks panels into rows: plain, and in some rotations.
inline HWY_NOINLINE void unpack_rows(const Problem& p, const float* const* panels,
                                     const float* plain, int64_t rows, RotationsSeen rotations,
                                     const RowSets& to) {
  const auto unpack = [&](const float* from, float* rows_of) HWY_ATTR {
    for (int64_t i = 0; i < rows; i += kLanes)
      unpack_panel(from + i * p.depth16, kLanes, p.depth16, rows_of + i * p.depth16, p.depth16);
  };
  if (to.plain) unpack(plain, to.plain);
  for (size_t rotation = 0; rotation < p.rotations.list.size(); ++rotation)
    if (to.rotated[rotation] != to.plain && rotations.has(rotation))
      unpack(panels[rotation], to.rotated[rotation]);
}

// Queries of a head, and the rotations in which they see a unit of keys.
struct RotatedQueries {
  const FrameRows& rows;
  const HostAnyView<const float>& x;
  int64_t head, unit;
  RotationsSeen rotations;
};

HWY_INLINE const float* const* rotate_queries(const RotatedQueries& q, const Panels& to,
                                              const Panels& grown, float* factors) {
  const Problem& p = q.rows.problem;
  pack_rows(q.rows, q.x, q.head, p.scale, to, q.rotations);
  if (!grown.rotated) return to.rotated;
  for (size_t rotation = 0; rotation < p.rotations.list.size(); ++rotation) {
    if (!q.rotations.has(rotation)) continue;
    if (p.rotations.list[rotation].grows)
      grow_queries(q.rows, rotation, q.unit, to.rotated[rotation], factors,
                   grown.rotated[rotation]);
    else
      std::copy_n(to.rotated[rotation], round_up(q.rows.rows, kLanes) * p.depth16,
                  grown.rotated[rotation]);
  }
  return grown.rotated;
}

// Queries times the scale as rows, plain and rotated; by way of panels if any are rotated.
inline HWY_NOINLINE void put_query_rows(const RotatedQueries& q, const Panels& panels,
                                        const Panels& grown, float* factors, const RowSets& to) {
  const Problem& p = q.rows.problem;
  bool rotates = false;
  for (size_t rotation = 0; rotation < p.rotations.list.size(); ++rotation)
    rotates = rotates || (q.rotations.has(rotation) && to.rotated[rotation] != to.plain);
  if (rotates) {
    const float* const* rotated = rotate_queries(q, panels, grown, factors);
    return unpack_rows(p, rotated, panels.plain, q.rows.rows, q.rotations, to);
  }
  copy_some(q.rows, q.x, q.head, {0, q.rows.rows}, to.plain, p.scale);
  std::fill(to.plain + q.rows.rows * p.depth16,
            to.plain + round_up(q.rows.rows, kLanes) * p.depth16, 0.0F);
}

HWY_INLINE bool rows_finite(const Problem& p, const RowSets& rows, int64_t size,
                            RotationsSeen rotations) {
  bool finite = !rows.plain || all_finite(rows.plain, size);
  for (size_t rotation = 0; rotation < p.rotations.list.size(); ++rotation)
    finite = finite && (rows.rotated[rotation] == rows.plain || !rotations.has(rotation) ||
                        all_finite(rows.rotated[rotation], size));
  return finite;
}

// Overwrites gradients of rotated rows, [rows][depth16], with gradients of the rows. unit: the unit
// of keys whose growth the queries have.
inline HWY_NOINLINE void rotate_back(const FrameRows& rows, size_t rotation, int64_t unit,
                                     float* panel, float* factors, float* grads) {
  const Problem& p = rows.problem;
  const SidePhases& phases = rows.phases(rotation);
  if (!phases.rotation) return;
  for (int64_t i = 0; i < rows.rows; i += kLanes) {
    float* at = grads + i * p.depth16;
    pack_panel(at, p.depth16, 1, std::min(kLanes, rows.rows - i), p.depth16, 1, panel);
    if (p.rotations.list[rotation].grows && rows.side == Side::kQuery) {
      const SidePhases& keys = p.phases.at(rows.block.phases, rotation).key;
      growth_factors(*phases.rotation,
                     phases.origins.data() + (rows.first + i) / kLanes * phases.axes,
                     keys.origins.data() + unit * keys.axes, p.depth16, factors);
      for (int64_t c = 0; c < p.depth16; ++c)
        store(mul(set(factors[c]), load(panel + c * kLanes)), panel + c * kLanes);
    }
    rotate_panel(phases, rows.first + i, Rotate::kBack, panel);
    unpack_panel(panel, kLanes, p.depth16, at, p.depth16);
  }
}

// to += factor * x; count is a multiple of kLanes.
inline HWY_NOINLINE void add_scaled(int64_t count, float factor, const float* x, float* to) {
  const Lanes times = set(factor);
  for (int64_t n = 0; n < count; n += kLanes)
    store(mul_add(load(x + n), times, load(to + n)), to + n);
}

// Writes a row, or adds it.
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
