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
#if defined(SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_
#endif

#include <algorithm>
#include <array>
#include <type_traits>

#include "sextant/attention/cpu/tile/epilogue.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/multiply_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

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
