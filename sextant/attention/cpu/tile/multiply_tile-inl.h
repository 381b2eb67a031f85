// One tile of the matrix product: its operands, and the loop that adds up its sums in registers.
//
// The tile of accumulators stays in registers. A step of its sums loads rows + blocks numbers for
// rows * blocks multiply-adds, and cores with AVX-512 load hardly more than one vector a cycle
// beside two of those (Ice Lake: 1.15 measured, 8 x 2 then reach 75 to 80 % of the peak, 8 x 3 and
// 6 x 4 90 to 97). AVX2's tiles reach 93 to 96 % of a Zen 3 core's.
#if defined(SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_TILE_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_TILE_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_TILE_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "hwy/cache_control.h"
#include "sextant/attention/cpu/tile/epilogue.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/pairs-inl.h"
#include "sextant/attention/cpu/tile/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Steps that are known when a tile is compiled need no registers for their multiples, nor
// instructions that make these for each tile. So each way of lying in memory is a type.
struct LeftRows {  // each row whole
  const float* data;
  int64_t row_step;
  static constexpr int64_t depth_step = 1;
};
struct LeftColumns {  // each column whole: a panel, or a matrix that is multiplied transposed
  const float* data;
  int64_t depth_step;
  static constexpr int64_t row_step = 1;
};

template <class Number>  // float; Bfloat16 or Float16, which are widened as they are read
struct RightRowsOf {     // each row whole
  const Number* data;
  int64_t depth_step;
  static constexpr int64_t block_step = kLanes;
};
using RightRows = RightRowsOf<float>;
struct RightPanels {  // panels of sixteen columns, one behind the other
  const float* data;
  int64_t block_step;
  static constexpr int64_t depth_step = kLanes;
};

// Accumulators and what they are fed from must fit 32 registers (AVX-512, NEON) or 16. Of AVX2's,
// ten or twelve are accumulators (next_rows() below): eight, 4 rows x 1 block, just outlast the
// latency on paper, and reach 61 to 92 % of the peak by what else the machine does.
inline constexpr int kTileRows = kVectors == 1 ? 8 : kVectors == 2 ? 6 : HWY_ARCH_ARM ? 4 : 2;
inline constexpr int kTileBlocks = kVectors <= 2 ? 2 : 1;
// One or two rows need more blocks, for their accumulators alone do not outlast the latency.
inline constexpr int kThinRows = kVectors == 1 ? 2 : 1;
inline constexpr int kThinBlocks = kVectors == 1 ? 8 : kVectors == 2 ? 4 : 2;

enum class Sum { kNew, kAdded, kNewOfPairs, kNewOfDots };  // of dots: of pairs, by one instruction
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

// The prefetch policy of a product: Nothing, or one that asks for lines(blocks) cache lines beside
// each row of b, one by one among the row's multiply-adds: from start(b, blocks) on, which
// step(blocks) moves on from row to row.
struct Nothing {};
template <class Prefetch>
inline constexpr bool kAsksByRow = requires {
  Prefetch::lines(1);
};

// Totals of the left side, where that is a panel of kStrip rows: sums[i] (+)= the sum over k of
// a(i, k). They are added up in the same order as c is, so that they are what c would be if b were
// 1, bit by bit. The first tile of a product makes them for all rows.
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

// The loop of unknown length is outside, for g++ unrolls the others, which keeps sums in registers;
// and it is said to be short, for g++ would rather keep its numbers in registers than those of the
// sums' loop.
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

// What is asked for beside the rows of a tile: a line before() every so many of `all` multiply-adds
// of a row. (Of a lambda g++ finds that it does nothing but ask, and drops it.)
template <int kBlocks, class Prefetch, class B>
struct Asking {
  Asking(const Prefetch&, const B&) {}
  HWY_INLINE void before(int, int) {}
  HWY_INLINE void next_row() {}
};
template <int kBlocks, class Prefetch, class B>
requires kAsksByRow<Prefetch>
struct Asking<kBlocks, Prefetch, B> {
  Asking(const Prefetch& policy, const B& b)
      : at(policy.start(b.data, kBlocks)), step(policy.step(kBlocks)) {}
  HWY_INLINE void before(int n, int all) const {
    constexpr int kLines = Prefetch::lines(kBlocks);
    if (n * kLines % all < kLines)
      Prefetcher::ask_at<Prefetcher::Into::kL1Once>(at + n * kLines / all * Prefetcher::kLine);
  }
  HWY_INLINE void next_row() { at += step; }

  const std::byte* at;
  int64_t step;
};

template <Sum kSum, int kRows, int kBlocks, class A, class B, class Prefetch, class Plus,
          class Total>
HWY_INLINE void multiply_tile(int64_t depth, A a, B b, float* c, int64_t c_row,
                              const Prefetch& policy, const Plus& epilogue, Total totals) {
  const F32 d;
  const Totals::Some some;
  constexpr int kTileVectors = kBlocks * kVectors;
  // Registers hold either all of the left side's floats at once, or the right side's vectors.
  constexpr bool kHoldLeft = kVectors == 2 && kTileVectors > kRows;
  V sum[kRows][kTileVectors];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kTileVectors; ++j)
      sum[i][j] =
          kSum == Sum::kAdded ? hn::LoadU(d, c + i * c_row + j * kVectorLanes) : hn::Zero(d);
  // A tile begins with what it adds to, which may lie far away: the next rows' is asked for
  // meanwhile.
  if constexpr (kSum == Sum::kAdded && !kAsksByRow<Prefetch>)
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
  Asking<kBlocks, Prefetch, B> asking(policy, b);
  const auto add_row = [&]() HWY_ATTR {
    if constexpr (kHoldLeft) {
      V left[kRows];
      for (int i = 0; i < kRows; ++i) left[i] = hn::Set(d, a.data[i * a.row_step]);
      for (int j = 0; j < kTileVectors; ++j) {
        const V right = right_at(j);
        for (int i = 0; i < kRows; ++i) {
          asking.before(j * kRows + i, kRows * kTileVectors);
          sum[i][j] = add_product<kSum>(d, left[i], right, sum[i][j]);
        }
      }
    } else {
      V right[kTileVectors];
      for (int j = 0; j < kTileVectors; ++j) right[j] = right_at(j);
      for (int i = 0; i < kRows; ++i) {
        const V left = hn::Set(d, a.data[i * a.row_step]);
        for (int j = 0; j < kTileVectors; ++j) {
          asking.before(i * kTileVectors + j, kRows * kTileVectors);
          sum[i][j] = add_product<kSum>(d, left, right[j], sum[i][j]);
        }
      }
    }
    for (int n = 0; n < Total::kTileVectors; ++n)
      total[n] = add_line<kSum>(some, hn::LoadU(some, a.data + n * Totals::kSome), total[n]);
    asking.next_row();
    a.data += a.depth_step;
    b.data += b.depth_step;
  };
  // Counting and branching for each row of b takes slots of dispatch, which are what a core is
  // short of whose other thread is busy: a tenth of the time there. Clang unrolls by itself.
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
