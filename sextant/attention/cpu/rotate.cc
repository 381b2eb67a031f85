// Pairs of consecutive columns are runs, which are rotated a vector at a time, by cos and sin of a
// block of rows.
#include "sextant/attention/rotary/rotate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/attention/cpu/rotate.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/check_field.h"
#include "sextant/attention/check_plan.h"
#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/cpu/parallel.h"
#include "sextant/attention/cpu/phases.h"
#include "sextant/attention/cpu/tile/pack-inl.h"
#include "sextant/attention/cpu/tile/prefetch.h"
#include "sextant/base/error.h"

#ifndef SEXTANT_ATTENTION_CPU_TURN_ONCE
#define SEXTANT_ATTENTION_CPU_TURN_ONCE
namespace sextant::cpu {

// Consecutive pairs: pair first_pair + n has columns x + n * step and y + n * step.
struct PairRun {
  int64_t first_pair, count, x, y, step;

  bool halves() const { return step == 1; }                    // x x x ... y y y ...
  bool neighbours() const { return step == 2 && y == x + 1; }  // x y x y ...
};

// cos and sin of a block of rows: [rows][stride], stride a multiple of kLanes.
struct Angles {
  const float *cos, *sin;
  int64_t stride;
};

// Prefetch distance in bytes, which fits an L1 cache of 32 KB. With the hardware prefetcher alone a
// Zen 5 rotates half as many rows (there 12 KB would be 3 % better).
inline constexpr int64_t kBytesAhead = 8192;

}  // namespace sextant::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Rotates (x, y) as rotate_panel() does.
HWY_INLINE void rotate_pair(V cos, V sin, V& x, V& y) {
  const V rotated = hn::NegMulAdd(y, sin, hn::Mul(x, cos));
  y = hn::MulAdd(x, sin, hn::Mul(y, cos));
  x = rotated;
}

// Rotates up to kVectorLanes pairs of any columns.
HWY_INLINE void rotate_gathered(const PairRun& run, int64_t n, int64_t count, const float* cos,
                                const float* sin, int64_t column_stride, float* row) {
  const F32 d;
  HWY_ALIGN float x[kVectorLanes] = {}, y[kVectorLanes] = {};
  for (int64_t i = 0; i < count; ++i) {
    x[i] = row[(run.x + (n + i) * run.step) * column_stride];
    y[i] = row[(run.y + (n + i) * run.step) * column_stride];
  }
  V a = hn::Load(d, x), b = hn::Load(d, y);
  rotate_pair(hn::LoadU(d, cos + run.first_pair + n), hn::LoadU(d, sin + run.first_pair + n), a, b);
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  for (int64_t i = 0; i < count; ++i) {
    row[(run.x + (n + i) * run.step) * column_stride] = x[i];
    row[(run.y + (n + i) * run.step) * column_stride] = y[i];
  }
}

HWY_INLINE void prefetch(const float* at) { Prefetcher::prefetch_at(at); }

// soon: the row to prefetch, which is rotated some rows later.
HWY_INLINE void rotate_run(const PairRun& run, const float* cos, const float* sin,
                           int64_t column_stride, float* row, const float* soon) {
  const F32 d;
  int64_t n = 0;
  if (column_stride == 1 && run.halves()) {
    for (; n + kVectorLanes <= run.count; n += kVectorLanes) {
      prefetch(soon + run.x + n);
      prefetch(soon + run.y + n);
      V x = hn::LoadU(d, row + run.x + n), y = hn::LoadU(d, row + run.y + n);
      rotate_pair(hn::LoadU(d, cos + run.first_pair + n), hn::LoadU(d, sin + run.first_pair + n), x,
                  y);
      hn::StoreU(x, d, row + run.x + n);
      hn::StoreU(y, d, row + run.y + n);
    }
  } else if (column_stride == 1 && run.neighbours()) {
    for (; n + kVectorLanes <= run.count; n += kVectorLanes) {
      prefetch(soon + run.x + 2 * n);
      prefetch(soon + run.x + 2 * n + kVectorLanes);
      V x, y;
      hn::LoadInterleaved2(d, row + run.x + 2 * n, x, y);
      rotate_pair(hn::LoadU(d, cos + run.first_pair + n), hn::LoadU(d, sin + run.first_pair + n), x,
                  y);
      hn::StoreInterleaved2(x, y, d, row + run.x + 2 * n);
    }
  }
  for (; n < run.count; n += kVectorLanes)
    rotate_gathered(run, n, std::min<int64_t>(kVectorLanes, run.count - n), cos, sin, column_stride,
                    row);
}

void rotate_block(const std::vector<PairRun>& runs, const Angles& angles, const HostView<float>& x,
                  int64_t batch, KeyRange rows) {
  const int64_t bytes = static_cast<int64_t>(sizeof(float)) * std::max<int64_t>(x.columns, 1);
  const int64_t count = rows.last - rows.first, ahead = std::min(kBytesAhead / bytes, count - 1);
  const auto row_ahead = [&](int64_t head, int64_t row) {
    const int64_t soon = row + ahead;
    if (soon < rows.last) return x.at(batch, head, soon);
    return x.at(batch, std::min(head + 1, x.heads - 1), soon - count);
  };
  for (int64_t head = 0; head < x.heads; ++head)
    for (int64_t row = rows.first; row < rows.last; ++row) {
      const int64_t at = (row - rows.first) * angles.stride;
      for (const PairRun& run : runs)
        rotate_run(run, angles.cos + at, angles.sin + at, x.column_stride, x.at(batch, head, row),
                   row_ahead(head, row));
    }
}

// Transposes phases from [pairs][rows] to [rows][pairs]; both are multiples of kLanes.
void transpose_angles(int64_t pairs, int64_t rows, const float* from, float* to) {
  for (int64_t row = 0; row < rows; row += kLanes)
    unpack_panel(from + row, rows, pairs, to + row * pairs, pairs);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {
namespace {

SEXTANT_EXPORT(rotate_block);
SEXTANT_EXPORT(transpose_angles);

std::vector<PairRun> runs_of(const Rotation& rotation) {
  std::vector<PairRun> runs;
  for (size_t f = 0; f < rotation.pairs.size(); ++f) {
    const int64_t x = rotation.pairs[f].first, y = rotation.pairs[f].second;
    if (!runs.empty()) {
      PairRun& run = runs.back();
      const int64_t step = x - run.x - (run.count - 1) * run.step;
      if (step == y - run.y - (run.count - 1) * run.step && (run.count == 1 || step == run.step)) {
        run.step = step;
        ++run.count;
        continue;
      }
    }
    runs.push_back({static_cast<int64_t>(f), 1, x, y, 0});
  }
  return runs;
}

void check(std::span<const HostView<float>> views, const SideRotation& side) {
  for (const HostView<float>& x : views) {
    if (x.batch != views[0].batch || x.rows != views[0].rows)
      fail("rotate_rows: views: expected the same batch and rows, but got " +
           std::to_string(x.batch) + " x " + std::to_string(x.rows) + " beside " +
           std::to_string(views[0].batch) + " x " + std::to_string(views[0].rows));
    check_rotation({.member = "rotate"}, side, *side.rotation, x.columns);
    if (!side.rotary_positions && !side.rotation->pairs.empty() && x.batch * x.heads * x.rows > 0)
      refuse_field("rotate.rotary_positions", "data", "a null pointer");
  }
  for (const Rotation::Pair& pair : side.rotation->pairs)
    if (pair.growth != 0)
      fail("rotate_rows: rotation: expected one that does not grow, but got growth " +
           std::to_string(pair.growth));
}

void rotate_views(std::span<const HostView<float>> views, const SideRotation& side,
                  const Executor& executor) {
  if (views.empty()) return;
  check(views, side);
  // A block is long enough for cheap phases, and its cos and sin stay in the L2 cache.
  constexpr int64_t kMostRows = 256;
  constexpr double kSecondsOfFloat = 3e-10;
  const std::vector<PairRun> runs = runs_of(*side.rotation);
  const auto pairs = static_cast<int64_t>(side.rotation->pairs.size());
  const int64_t stride = round_up(pairs, kLanes);
  const int64_t batch = views[0].batch, rows = views[0].rows;
  const int64_t most = std::min(kMostRows, round_up(rows, kLanes));
  const int64_t blocks = rows == 0 ? 0 : (rows + most - 1) / most;
  double floats = 0;
  for (const HostView<float>& x : views)
    floats += static_cast<double>(batch * x.heads * rows * x.columns);
  std::vector<AlignedFloats> scratch;
  scratch.reserve(static_cast<size_t>(executor.workers()));
  for (int n = 0; n < executor.workers(); ++n) scratch.emplace_back(4 * stride * most + kLanes);
  share_out(executor, batch * blocks, kSecondsOfFloat * floats, [&](int64_t n, int worker) {
    const int64_t b = n / blocks, first = n % blocks * most;
    const KeyRange block = {first, std::min(first + most, rows)};
    float* const cos = scratch[static_cast<size_t>(worker)].data();
    float* const sin = cos + stride * most;
    float* const cos_of_row = sin + stride * most;
    float* const sin_of_row = cos_of_row + stride * most;
    const int64_t rows16 = round_up(block.last - block.first, kLanes);
    std::fill_n(cos, 2 * stride * most, 0.0F);
    fill_phases(side, b, block, rows16, cos, sin);
    SEXTANT_DISPATCH(transpose_angles)(stride, rows16, cos, cos_of_row);
    SEXTANT_DISPATCH(transpose_angles)(stride, rows16, sin, sin_of_row);
    for (const HostView<float>& x : views)
      SEXTANT_DISPATCH(rotate_block)(runs, {cos_of_row, sin_of_row, stride}, x, b, block);
  });
}

}  // namespace
}  // namespace sextant::cpu

namespace sextant {

void rotate_rows(std::span<const HostView<float>> views, const SideRotation& side,
                 const Executor& executor) {
  cpu::rotate_views(views, side, executor);
}

}  // namespace sextant
#endif
