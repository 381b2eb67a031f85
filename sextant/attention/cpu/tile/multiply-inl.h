// The one matrix product of the kernels, whose operands are described by steps:
//
//   c[i][j] (+)= sum over k of  a(i, k) * b(k, j)         i < rows, j < 16 * blocks, k < depth
//
//   a(i, k) = a.data[i * a.row_step + k * a.depth_step]            one float, spread to all lanes
//   b(k, j) = b.data[k * b.depth_step + (j / 16) * b.block_step + j % 16]
//
// Scores (queries in panels, keys in panels), mixtures (weights by rows, values by rows) and the
// products with a transposed left side (dv = p^T do) differ in their steps only. The sum over k
// runs in order with fused multiply-add and one accumulator for each c, so a result does not depend
// on which other rows or columns were computed with it. What else is to be added to a c (addends.h)
// comes after the whole sum, while it is still in its register: the bits are those of a pass that
// adds it later. Of pairs (pairs-inl.h) a(i, k) and b(k, j) hold two numbers each, whose products
// are added both.
//
// The tile of accumulators stays in registers. A step of its sums loads rows + blocks numbers for
// rows * blocks multiply-adds, and cores with AVX-512 load hardly more than one vector a cycle
// beside two of those (Ice Lake: 1.15 measured, 8 x 2 then reach 75 to 80 % of the peak, 8 x 3 and
// 6 x 4 90 to 97). AVX2's tiles reach 93 to 96 % of a Zen 3 core's.
#if defined(SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_
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

// What a product asks for meanwhile, that it or who comes after it will read from far away:
// before_tile(); or beside each row of b lines(blocks) lines from start(b, blocks) on, which
// step(blocks) moves on from row to row, one by one among the row's multiply-adds.
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
  if constexpr (requires { policy.before_tile(); }) policy.before_tile();
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

// A tile of `rows` rows, one of the kRows.
template <Sum kSum, int kBlocks, int... kRows, class A, class B, class Prefetch, class Plus,
          class Total>
HWY_INLINE void multiply_one_of(int64_t rows, int64_t depth, A a, B b, float* c, int64_t c_row,
                                const Prefetch& policy, const Plus& epilogue, Total totals) {
  (void)((rows == kRows &&
          (multiply_tile<kSum, kRows, kBlocks>(depth, a, b, c, c_row, policy, epilogue, totals),
           true)) ||
         ...);
}

// As that, with totals: a function of its own, for g++ gives the others worse code beside it.
template <Sum kSum, int kBlocks, int... kRows, class A, class B, class Prefetch, class Plus>
HWY_NOINLINE void multiply_first(int64_t rows, int64_t depth, const A& a, const B& b, float* c,
                                 int64_t c_row, const Prefetch& policy, const Plus& epilogue,
                                 Totals totals) {
  multiply_one_of<kSum, kBlocks, kRows...>(rows, depth, a, b, c, c_row, policy, epilogue, totals);
}

// As that, and if it is the first tile with the totals, if there are any.
template <Sum kSum, int kBlocks, int... kRows, class A, class B, class Prefetch, class Plus,
          class Total>
HWY_INLINE void multiply_some(int64_t rows, [[maybe_unused]] bool first, int64_t depth, A a, B b,
                              float* c, int64_t c_row, const Prefetch& policy, const Plus& epilogue,
                              [[maybe_unused]] Total totals) {
  if constexpr (Total::kTileVectors > 0)
    if (HWY_UNLIKELY(first))
      return multiply_first<kSum, kBlocks, kRows...>(rows, depth, a, b, c, c_row, policy, epilogue,
                                                     totals);
  multiply_one_of<kSum, kBlocks, kRows...>(rows, depth, a, b, c, c_row, policy, epilogue,
                                           NoTotals());
}

template <class A>
requires requires(A a) { a.row_step; }
HWY_INLINE A from_row(A a, int64_t i) {
  a.data += i * a.row_step;
  return a;
}

template <class B>
requires requires(B b) { b.block_step; }
HWY_INLINE B from_block(B b, int64_t j) {
  b.data += j * b.block_step;
  return b;
}

HWY_INLINE EpilogueTerms from_row(EpilogueTerms x, int64_t i) {
  x.row += i;
  return x;
}
HWY_INLINE EpilogueTerms from_block(EpilogueTerms x, int64_t j) {
  x.block += j;
  return x;
}
HWY_INLINE Nothing from_row(Nothing, int64_t) { return {}; }
HWY_INLINE Nothing from_block(Nothing, int64_t) { return {}; }
// Rows after the first read what was asked for with those.
template <class Prefetch>
HWY_INLINE Prefetch for_row(const Prefetch& policy, int64_t i) {
  if constexpr (kAsksByRow<Prefetch>)
    return i == 0 ? policy : policy.nothing();
  else
    return policy;
}

// All rows of kBlocks blocks, by kMostRows of them (a power of two) at once or fewer. totals: with
// the first.
template <Sum kSum, int kBlocks, int kMostRows, class A, class B, class Prefetch, class Plus,
          class Total>
HWY_NOINLINE void multiply_blocks(int64_t rows, int64_t depth, A a, B b, float* c, int64_t c_row,
                                  Prefetch policy, Plus epilogue, Total totals) {
  int64_t i = 0;
  const auto by = [&](auto some) HWY_ATTR {
    for (; i + some() <= rows; i += some())
      multiply_some<kSum, kBlocks, some()>(some(), i == 0, depth, from_row(a, i), b, c + i * c_row,
                                           c_row, for_row(policy, i), from_row(epilogue, i),
                                           totals);
  };
  if constexpr (kMostRows >= 8) by(std::integral_constant<int, 8>());
  if constexpr (kMostRows >= 4) by(std::integral_constant<int, 4>());
  if constexpr (kMostRows >= 2) by(std::integral_constant<int, 2>());
  by(std::integral_constant<int, 1>());
}

// Of `rows` that are left to do, how many the next tile takes: 16 = 6 + 5 + 5, 7 = 4 + 3, and 8 = 5
// + 3 with AVX2, which does 3 rows by two blocks, or 4 + 4 with AVX-512.
constexpr int64_t next_rows(int64_t rows) {
  constexpr std::array<int8_t, 14> kByOnes = {0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 5, 6, 6, 5};
  constexpr std::array<int8_t, 14> kByFours = {0, 1, 2, 3, 4, 5, 6, 4, 4, 5, 5, 6, 6, 5};
  return rows >= 14 ? 6 : (kVectors == 1 ? kByFours : kByOnes)[static_cast<size_t>(rows)];
}

// As multiply_blocks, by AVX2's tiles: 6, 5 or, if need be, 4 rows and one block, or up to 3 rows
// and two blocks; `times` times kBlocks blocks, one or two. By reference, because g++ copies what
// was just written in halves as a whole, which waits for the cache.
template <Sum kSum, int kBlocks, class A, class B, class Prefetch, class Plus, class Total>
HWY_NOINLINE void multiply_narrow(int64_t rows, int64_t times, int64_t depth, const A& a,
                                  const B& b, float* c, int64_t c_row, Prefetch policy,
                                  Plus epilogue, Total totals) {
  for (int64_t n = 0; n < times; ++n, c += kBlocks * kLanes) {
    const B right = from_block(b, n * kBlocks);
    const Plus block_plus = from_block(epilogue, n * kBlocks);
    int64_t i = 0;
    for (int64_t next; (next = next_rows(rows - i)) > 3; i += next)
      for (int j = 0; j < kBlocks; ++j)
        multiply_some<kSum, 1, 6, 5, 4>(next, n + i + j == 0, depth, from_row(a, i),
                                        from_block(right, j), c + i * c_row + j * kLanes, c_row,
                                        for_row(policy, i), from_block(from_row(block_plus, i), j),
                                        totals);
    multiply_some<kSum, kBlocks, 3, 2, 1>(rows - i, n + i == 0, depth, from_row(a, i), right,
                                          c + i * c_row, c_row, for_row(policy, i),
                                          from_row(block_plus, i), totals);
  }
}

// As multiply_blocks, by AVX-512's tiles of four blocks, `times` times.
template <Sum kSum, class A, class B, class Prefetch, class Plus, class Total>
HWY_NOINLINE void multiply_fours(int64_t rows, int64_t times, int64_t depth, const A& a, const B& b,
                                 float* c, int64_t c_row, Prefetch policy, Plus epilogue,
                                 Total totals) {
  for (int64_t n = 0; n < times; ++n, c += 4 * kLanes)
    for (int64_t i = 0, next; i < rows; i += next) {
      next = next_rows(rows - i);
      multiply_some<kSum, 4, 6, 5, 4, 3, 2, 1>(
          next, n + i == 0, depth, from_row(a, i), from_block(b, n * 4), c + i * c_row, c_row,
          for_row(policy, i), from_block(from_row(epilogue, i), n * 4), totals);
    }
}

// kStrip rows by AVX-512's tiles of three blocks, `times` times.
template <Sum kSum, class A, class B, class Prefetch, class Plus, class Total>
HWY_NOINLINE void multiply_threes(int64_t times, int64_t depth, const A& a, const B& b, float* c,
                                  int64_t c_row, Prefetch policy, Plus epilogue, Total totals) {
  for (int64_t n = 0; n < times; ++n, c += 3 * kLanes)
    multiply_some<kSum, 3, kStrip>(kStrip, n == 0, depth, a, from_block(b, n * 3), c, c_row, policy,
                                   from_block(epilogue, n * 3), totals);
}

// Of the blocks of a strip, those that AVX-512 does three at a time, which leaves four or two: 16 =
// 4 * 3 + 4 and 8 = 2 * 3 + 2. By fours a strip has two tiles, each of which reads all of b.
constexpr int64_t blocks_by_threes(int64_t rows, int64_t blocks) {
  const int64_t others = blocks % 3 == 1 ? 4 : blocks % 3;
  return kVectors == 1 && rows == kStrip ? std::max<int64_t>(blocks - others, 0) : 0;
}

// As multiply(), with totals: Totals, or NoTotals.
template <Sum kSum, class A, class B, class Prefetch, class Plus, class Total>
HWY_INLINE void multiply_all(int64_t rows, int64_t blocks, int64_t depth, A a, B b, float* c,
                             int64_t c_row, Prefetch policy, Plus epilogue, Total totals) {
  int64_t j = 0;
  // f: makes `some` blocks at a time, the first of all with the totals.
  const auto by = [&](int64_t some, int64_t times, auto f) HWY_ATTR {
    if (times == 0) return;
    if (j == 0)
      f(a, b, c, epilogue, totals);
    else
      f(a, from_block(b, j), c + j * kLanes, from_block(epilogue, j), NoTotals());
    j += some * times;
  };
  const auto by_blocks = [&](auto some, auto most_rows) HWY_ATTR {
    while (j + some() <= blocks)
      by(some(), 1, [&](const A& l, const B& r, float* to, const Plus& p, auto with) HWY_ATTR {
        multiply_blocks<kSum, some(), most_rows()>(rows, depth, l, r, to, c_row, policy, p, with);
      });
  };
  using std::integral_constant;
  if (rows <= kThinRows)
    by_blocks(integral_constant<int, kThinBlocks>(), integral_constant<int, kThinRows>());
  if constexpr (kVectors == 1) {
    const int64_t threes = blocks_by_threes(rows, blocks) / 3;
    by(3, threes, [&](const A& l, const B& r, float* to, const Plus& p, auto with) HWY_ATTR {
      multiply_threes<kSum>(threes, depth, l, r, to, c_row, policy, p, with);
    });
    // What comes from far away is better read once.
    const int64_t fours = kAsksByRow<Prefetch> && rows == kStrip ? 0 : (blocks - j) / 4;
    by(4, fours, [&](const A& l, const B& r, float* to, const Plus& p, auto with) HWY_ATTR {
      multiply_fours<kSum>(rows, fours, depth, l, r, to, c_row, policy, p, with);
    });
  }
  if constexpr (kVectors == 2) {
    const int64_t pairs = (blocks - j) / 2;
    by(2, pairs, [&](const A& l, const B& r, float* to, const Plus& p, auto with) HWY_ATTR {
      multiply_narrow<kSum, 2>(rows, pairs, depth, l, r, to, c_row, policy, p, with);
    });
    const int64_t ones = blocks - j;
    by(1, ones, [&](const A& l, const B& r, float* to, const Plus& p, auto with) HWY_ATTR {
      multiply_narrow<kSum, 1>(rows, ones, depth, l, r, to, c_row, policy, p, with);
    });
  } else {
    by_blocks(integral_constant<int, kTileBlocks>(), integral_constant<int, kTileRows>());
    if constexpr (kTileBlocks > 1)
      by_blocks(integral_constant<int, 1>(), integral_constant<int, kTileRows>());
  }
}

// plus: EpilogueTerms, or Nothing.
template <Sum kSum, class A, class B, class Prefetch = Nothing, class Plus = Nothing>
HWY_INLINE void multiply(int64_t rows, int64_t blocks, int64_t depth, A a, B b, float* c,
                         int64_t c_row, Prefetch policy = {}, Plus epilogue = {}) {
  multiply_all<kSum>(rows, blocks, depth, a, b, c, c_row, policy, epilogue, NoTotals());
}

// c (+)= a b for a panel of up to kStrip rows, [depth][kStrip], and the totals of its rows:
// totals[kStrip]. Of pairs: at least one block.
template <Sum kSum, class B, class Prefetch = Nothing>
HWY_INLINE void multiply_and_total(int64_t rows, int64_t blocks, int64_t depth, const float* panel,
                                   B b, float* c, int64_t c_row, float* totals,
                                   Prefetch policy = {}) {
  multiply_all<kSum>(rows, blocks, depth, LeftColumns{panel, kStrip}, b, c, c_row, policy,
                     Nothing(), Totals{totals});
  if (blocks > 0) return;
  for (int64_t i = 0; i < rows; ++i) {
    if (kSum == Sum::kNew) totals[i] = 0;
    for (int64_t k = 0; k < depth; ++k) totals[i] += panel[k * kStrip + i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
