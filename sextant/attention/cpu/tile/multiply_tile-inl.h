// One tile of the matrix product (multiply-inl.h): its operands, and the loop over k with all
// accumulators in registers.
//
// A step of the loop loads rows + blocks values for rows * blocks multiply-adds, and cores with
// AVX-512 load hardly more than one vector a cycle beside two multiply-adds (Ice Lake: 1.15
// measured, 8 x 2 then reach 75 to 80 % of the peak, 8 x 3 and 6 x 4 90 to 97). AVX2's tiles reach
// 93 to 96 % of a Zen 3 core's peak.
#if defined(SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_TILE_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_TILE_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_TILE_INL_H_
#endif

#include <cstddef>

#include "hwy/cache_control.h"
#include "sextant/attention/cpu/tile/epilogue.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/pairs-inl.h"
#include "sextant/attention/cpu/tile/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Each layout is a type: strides that are known when a tile is compiled need no registers for their
// multiples, nor instructions that make these for each tile.
struct LeftRows {  // row-major
  const float* data;
  int64_t row_step;
  static constexpr int64_t depth_step = 1;
};
struct LeftColumns {  // column-major: a panel, or a matrix that is multiplied transposed
  const float* data;
  int64_t depth_step;
  static constexpr int64_t row_step = 1;
};

template <class Number>  // float; Bfloat16 or Float16, which are converted as they are loaded
struct RightRowsOf {     // row-major
  const Number* data;
  int64_t depth_step;
  static constexpr int64_t block_step = kLanes;
};
using RightRows = RightRowsOf<float>;
struct RightPanels {  // panels of sixteen columns, one after the other
  const float* data;
  int64_t block_step;
  static constexpr int64_t depth_step = kLanes;
};

// Thin products: their few rows need more blocks, for the accumulators of two blocks do not outlast
// the latency of a multiply-add.
inline constexpr int kThinRows = kVectors == 1 ? 2 : 1;
inline constexpr int kThinBlocks = kVectors == 1 ? 8 : kVectors == 2 ? 4 : 2;

// kNewOfPairs: the operands hold pairs of bfloat16; kNewOfDots: their product is one instruction.
enum class Sum { kNew, kAdded, kNewOfPairs, kNewOfDots };
template <bool kDots>
inline constexpr Sum kNewOfPairs = kDots ? Sum::kNewOfDots : Sum::kNewOfPairs;

template <Sum kSum, class D>
HWY_INLINE hn::Vec<D> add_product([[maybe_unused]] D d, hn::Vec<D> a, hn::Vec<D> b,
                                  hn::Vec<D> sum) {
  if constexpr (kSum == Sum::kNewOfDots)
    return dot_at_once(d, a, b, sum);
  else if constexpr (kSum == Sum::kNewOfPairs)
    return dot_in_steps(d, a, b, sum);
  else
    return hn::MulAdd(a, b, sum);
}

// The prefetch policy of a product: Nothing, or one that prefetches lines(blocks) cache lines
// beside each row of b, one by one among the row's multiply-adds: from start(b, blocks) on, which
// step(blocks) moves on from row to row.
struct Nothing {};
template <class Prefetch>
inline constexpr bool kPrefetchesByRow = requires {
  Prefetch::lines(1);
};

// Totals of the left side, a panel of kStrip rows: sums[i] (+)= the sum over k of a(i, k). They are
// added up in the order of c, so that they have the bits that c would have if b were 1. The first
// tile of a product makes them for all rows.
struct Totals {
  using Some = hn::CappedTag<float, kStrip>;
  static constexpr int kSome = static_cast<int>(hn::MaxLanes(Some())),
                       kTileVectors = kStrip / kSome;
  float* sums;  // [kStrip]
};
struct NoTotals {
  static constexpr int kTileVectors = 0;
};
template <Sum kSum, class D>
HWY_INLINE hn::Vec<D> add_line(D d, hn::Vec<D> line, hn::Vec<D> sum) {
  if constexpr (kSum == Sum::kNewOfPairs || kSum == Sum::kNewOfDots) {
    const auto ones = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), kPairOfOnes));
    return add_product<kSum>(d, line, ones, sum);
  } else {
    return hn::Add(sum, line);
  }
}

// The loop of unknown length is the outer one, for g++ unrolls the inner ones, which keeps the sums
// in registers. HWY_UNLIKELY says that it is short: g++ would else keep its variables in registers
// rather than those of the loop over k.
template <int kRows, int kBlocks>
HWY_INLINE void add_to_tile(const EpilogueTerms& epilogue, V (&sum)[kRows][kBlocks * kVectors]) {
  int64_t n = 0;
  do {
    for (int j = 0; j < kBlocks; ++j) {
      const EpilogueTerm& x = epilogue.of(j)[n];
      const float* from = epilogue.at(x, j);
      for (int i = 0; i < kRows; ++i)
        for (int p = 0; p < kVectors; ++p)
          sum[i][j * kVectors + p] = hn::Add(
              sum[i][j * kVectors + p], hn::LoadU(F32(), from + i * x.row_step + p * kVectorLanes));
    }
  } while (HWY_UNLIKELY(++n < epilogue.count));
}
template <int kRows, int kBlocks>
HWY_INLINE void add_to_tile(Nothing, V (&)[kRows][kBlocks * kVectors]) {}

// Prefetches beside the rows of a tile: a line before() every so many of the `all` multiply-adds of
// a row. It is no lambda, for g++ finds that a lambda does nothing but prefetch, and drops it.
template <int kBlocks, class Prefetch, class B>
struct TilePrefetch {
  TilePrefetch(const Prefetch&, const B&) {}
  HWY_INLINE void before(int, int) {}
  HWY_INLINE void next_row() {}
};
template <int kBlocks, class Prefetch, class B>
requires kPrefetchesByRow<Prefetch>
struct TilePrefetch<kBlocks, Prefetch, B> {
  TilePrefetch(const Prefetch& policy, const B& b)
      : at(policy.start(b.data, kBlocks)), step(policy.step(kBlocks)) {}
  HWY_INLINE void before(int n, int all) const {
    constexpr int kLines = Prefetch::lines(kBlocks);
    if (n * kLines % all < kLines)
      Prefetcher::prefetch_at(at + n * kLines / all * Prefetcher::kLine);
  }
  HWY_INLINE void next_row() { at += step; }

  const std::byte* at;
  int64_t step;
};

template <Sum kSum, int kRows, int kBlocks, class A, class B, class Prefetch, class Epilogue,
          class Total>
HWY_INLINE void multiply_tile(int64_t depth, A a, B b, float* c, int64_t c_row,
                              const Prefetch& policy, const Epilogue& epilogue, Total totals) {
  const F32 d;
  const Totals::Some some;
  constexpr int kTileVectors = kBlocks * kVectors;
  // Registers hold either the broadcast floats of the left side, or the vectors of the right side.
  constexpr bool kHoldLeft = kVectors == 2 && kTileVectors > kRows;
  V sum[kRows][kTileVectors];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kTileVectors; ++j)
      sum[i][j] =
          kSum == Sum::kAdded ? hn::LoadU(d, c + i * c_row + j * kVectorLanes) : hn::Zero(d);
  // A tile begins by loading the c that it adds to, which may be far away: that of the next rows is
  // prefetched here.
  if constexpr (kSum == Sum::kAdded && !kPrefetchesByRow<Prefetch>)
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kBlocks; ++j) hwy::Prefetch(c + (kRows + i) * c_row + j * kLanes);
  const auto right_at = [&](int j) HWY_ATTR {
    return load_part(b.data + j / kVectors * b.block_step + j % kVectors * kVectorLanes);
  };
  hn::Vec<Totals::Some> total[Totals::kTileVectors];
  for (int n = 0; n < Total::kTileVectors; ++n) {
    total[n] = hn::Zero(some);
    if constexpr (Total::kTileVectors > 0 && kSum == Sum::kAdded)
      total[n] = hn::LoadU(some, totals.sums + n * Totals::kSome);
  }
  TilePrefetch<kBlocks, Prefetch, B> prefetch(policy, b);
  const auto add_row = [&]() HWY_ATTR {
    if constexpr (kHoldLeft) {
      V left[kRows];
      for (int i = 0; i < kRows; ++i) left[i] = hn::Set(d, a.data[i * a.row_step]);
      for (int j = 0; j < kTileVectors; ++j) {
        const V right = right_at(j);
        for (int i = 0; i < kRows; ++i) {
          prefetch.before(j * kRows + i, kRows * kTileVectors);
          sum[i][j] = add_product<kSum>(d, left[i], right, sum[i][j]);
        }
      }
    } else {
      V right[kTileVectors];
      for (int j = 0; j < kTileVectors; ++j) right[j] = right_at(j);
      for (int i = 0; i < kRows; ++i) {
        const V left = hn::Set(d, a.data[i * a.row_step]);
        for (int j = 0; j < kTileVectors; ++j) {
          prefetch.before(i * kTileVectors + j, kRows * kTileVectors);
          sum[i][j] = add_product<kSum>(d, left, right[j], sum[i][j]);
        }
      }
    }
    for (int n = 0; n < Total::kTileVectors; ++n)
      total[n] = add_line<kSum>(some, hn::LoadU(some, a.data + n * Totals::kSome), total[n]);
    prefetch.next_row();
    a.data += a.depth_step;
    b.data += b.depth_step;
  };
  // Counting and branching for each row of b takes dispatch slots, which are scarce on a core whose
  // other thread is busy: a tenth of the time there. Clang unrolls by itself.
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC unroll 4
#endif
  for (int64_t k = 0; k < depth; ++k) add_row();
  add_to_tile<kRows, kBlocks>(epilogue, sum);
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kTileVectors; ++j)
      hn::StoreU(sum[i][j], d, c + i * c_row + j * kVectorLanes);
  if constexpr (Total::kTileVectors > 0)
    for (int n = 0; n < Total::kTileVectors; ++n)
      hn::StoreU(total[n], some, totals.sums + n * Totals::kSome);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
