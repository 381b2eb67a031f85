// Scores of few queries, of all heads of a group at once, with one unit of keys.
//
// Keys are multiplied some rows at a time, while the next ones are prefetched into the L1 cache.
// Sums have the order of multiply(), so a decoded token has the bits that it has in the whole
// sequence.
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_DECODE_QK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_QK_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_QK_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_DECODE_QK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include "sextant/attention/cpu/forward/decode_keys-inl.h"
#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/attention/cpu/forward/rotated_columns.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/base/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

inline constexpr int64_t kKeysAtOnce = 8;
inline constexpr int64_t kColumnsAtOnce = 8;
// The most queries for which keys in the lanes are faster than queries in the lanes.
inline constexpr int64_t kFewQueries = kVectors == 1 ? 8 : 4;

// Keys by strides.
struct KeysAt {
  const float* data;
  int64_t row_step, column_step;
};

// to[key][query] = the product of kKeys rows of keys and the queries in the lanes of `d` of a
// panel. The rows are read in place, so nothing is packed.
template <int kKeys, class D>
HWY_INLINE void multiply_rows_of_keys(D d, int64_t depth, KeysAt keys, const float* queries,
                                      float* to, ColumnPrefetch& ahead) {
  hn::Vec<D> sum[kKeys];
  for (int i = 0; i < kKeys; ++i) sum[i] = hn::Zero(d);
  constexpr int64_t kSteps = kLanes / kKeys;  // steps that read a cache line
  for (int64_t c = 0; c < depth; c += kSteps) {
    ahead.prefetch<1>();
    const int64_t stop = std::min(c + kSteps, depth);
    for (int64_t n = c; n < stop; ++n) {
      const auto query = hn::LoadU(d, queries + n * kLanes);
      for (int i = 0; i < kKeys; ++i)
        sum[i] = hn::MulAdd(hn::Set(d, keys.data[i * keys.row_step]), query, sum[i]);
      keys.data += keys.column_step;
    }
  }
  for (int i = 0; i < kKeys; ++i) hn::StoreU(sum[i], d, to + i * kLanes);
}

// The products of kLanes keys, of which `count` exist, with up to kLanes queries, as a square
// [key][query].
template <class D>
HWY_NOINLINE void multiply_square(D d, int64_t depth, int64_t count, int64_t rows, KeysAt keys,
                                  const float* queries, float* square, ColumnPrefetch ahead) {
  for (int64_t lane = 0; lane < rows; lane += static_cast<int64_t>(hn::MaxLanes(d))) {
    int64_t j = 0;
    const auto from = [&]() -> KeysAt {
      return {keys.data + j * keys.row_step, keys.row_step, keys.column_step};
    };
    for (; j + kKeysAtOnce <= count; j += kKeysAtOnce)
      multiply_rows_of_keys<kKeysAtOnce>(d, depth, from(), queries + lane,
                                         square + j * kLanes + lane, ahead);
    for (; j < count; ++j)
      multiply_rows_of_keys<1>(d, depth, from(), queries + lane, square + j * kLanes + lane, ahead);
  }
}

// The products of kSquares * kLanes keys with kRows queries of a panel: to[query][key]. Keys are
// the lanes, eight columns at a time, which fills vectors where queries are few.
template <int kRows, int kSquares, class Number>
HWY_INLINE void multiply_columns_of_keys(int64_t depth, KeyRows<Number> keys, const float* queries,
                                         float* to, ColumnPrefetch& ahead) {
  const F32 d;
  // The vectors of keys whose columns fit into registers together: a query's value is broadcast
  // once for them.
  constexpr int kTileVectors = kSquares * kVectors, kTogether = std::max(1, kSquares / kVectors);
  // Row addresses are offsets from every eighth row, which saves registers.
  constexpr int kNear = std::min(kVectorLanes, 8);
  constexpr int64_t kLines =
      kSquares * kLanes * kColumnsAtOnce * int64_t{sizeof(Number)} / Prefetcher::kLine;
  const int64_t near_step = kNear * keys.row_step;
  V sum[kRows][kTileVectors];
  for (int i = 0; i < kRows; ++i)
    for (int p = 0; p < kTileVectors; ++p) sum[i][p] = hn::Zero(d);
  for (int64_t c = 0; c < depth; c += kColumnsAtOnce) {
    for (int p = 0; p < kTileVectors; p += kTogether) {
      V column[kTogether][kColumnsAtOnce];
      for (int t = 0; t < kTogether; ++t)
        sextant::HWY_NAMESPACE::load_eight_columns(
            d,
            [&](auto lanes, int row, int n) HWY_ATTR {
              const int key = (p + t) * kVectorLanes + row;
              return load_as(lanes,
                             keys.data + key / kNear * near_step + key % kNear * keys.row_step + n);
            },
            column[t]);
#if HWY_COMPILER_GCC_ACTUAL  // g++ would else keep columns in memory
#pragma GCC unroll 8
#endif
      for (int64_t n = 0; n < kColumnsAtOnce; ++n) {
        if (p == 0 && n % (kColumnsAtOnce / std::min(kLines, kColumnsAtOnce)) == 0)
          ahead.prefetch<std::max<int64_t>(kLines / kColumnsAtOnce, 1)>();
        for (int i = 0; i < kRows; ++i) {
          const V query = hn::Set(d, queries[(c + n) * kLanes + i]);
          for (int t = 0; t < kTogether; ++t)
            sum[i][p + t] = hn::MulAdd(column[t][n], query, sum[i][p + t]);
        }
      }
    }
    keys.data += kColumnsAtOnce;
  }
  for (int i = 0; i < kRows; ++i)
    for (int p = 0; p < kTileVectors; ++p)
      hn::StoreU(sum[i][p], d, to + i * kScoreStride + p * kVectorLanes);
}

// <q, k> of kRows queries with the unit's keys `range`. copy: that of key_stretch().
template <int kRows, class Number>
HWY_NOINLINE void multiply_key_range(const DecodeUnit& unit, KeyRange range, const float* queries,
                                     float* copy, float* to) {
  const Problem& p = unit.keys.problem;
  // Rows that are read in place must have arrived when the first of them is multiplied.
  const int64_t in_step = copy ? unit.ahead : rows_at_once(p.score, 1);
  for (int64_t j = range.first; j < range.last;) {
    KeyStretch<Number> some = key_stretch<Number>(unit, {j, range.last}, copy);
    const int64_t stop = j + some.count;
    const auto multiply_some = [&](auto squares) HWY_ATTR {
      multiply_columns_of_keys<kRows, squares()>(p.depth, some.keys, queries, to + j, some.ahead);
      some.keys.data += squares() * kLanes * some.keys.row_step;
      return squares() * kLanes;
    };
    if constexpr (kVectors == 1)
      while (std::min(in_step, stop - j) >= 2 * kLanes)
        j += multiply_some(std::integral_constant<int, 2>());
    while (j < stop) j += multiply_some(std::integral_constant<int, 1>());
  }
}

// The same for `rows` queries, rounded up to the first of the template's numbers that is enough.
template <int kRows, int... kMoreRows>
HWY_INLINE void multiply_keys_as_lanes(int64_t rows, const DecodeUnit& unit, KeyRange range,
                                       const float* queries, float* copy, float* to) {
  if constexpr (kRows <= kFewQueries)
    if (rows <= kRows)
      return each_key_kind(unit, range, copy,
                           [&]<class Number>(const Number*, KeyRange some, float* int8) HWY_ATTR {
                             multiply_key_range<kRows, Number>(unit, some, queries, int8, to);
                           });
  if constexpr (sizeof...(kMoreRows) > 0)
    multiply_keys_as_lanes<kMoreRows...>(rows, unit, range, queries, copy, to);
}

// <q, k> of all rows with `columns` of the unit's keys, which have no rotation. wide: room for
// DecodeUnit::ahead keys in float32.
inline HWY_NOINLINE void multiply_plain_keys(const DecodeUnit& unit, KeyRange columns, int64_t rows,
                                             size_t rotation, float* wide,
                                             const GroupedQueries& grouped) {
  const Problem& p = unit.keys.problem;
  const HostRows<float>& k = p.score.k;
  int64_t j = columns.first;
  if (rows <= kFewQueries && k.column_stride == 1 && p.depth % kColumnsAtOnce == 0) {
    const int64_t whole = round_down(std::min(columns.last, unit.keys.rows), kLanes);
    multiply_keys_as_lanes<1, 2, 4, 8>(rows, unit, {j, whole}, grouped.queries[rotation], wide,
                                       grouped.products[rotation]);
    j = std::max(j, whole);
  }
  HWY_ALIGN float square[kLanes * kLanes] = {};
  for (; j < columns.last; j += kLanes) {
    const int64_t count = std::min(kLanes, unit.keys.rows - j);
    KeysAt keys = {wide, p.depth16, 1};
    if (k.dtype == DType::kFloat32 && !unit.keys.is_int8(j))
      keys = {static_cast<const float*>(unit.keys.at(k, unit.key_head, j)), k.row_stride,
              k.column_stride};
    else
      copy_some(unit.keys, k, unit.key_head, {j, j + count}, wide);
    for (int64_t row = 0; row < rows; row += kLanes) {
      const int64_t some = std::min(kLanes, rows - row);
      const float* queries = grouped.queries[rotation] + row * p.depth16;
      const ColumnPrefetch ahead =
          row == 0 ? ColumnPrefetch(stretch_of(unit, Reads::kKeys, j)) : ColumnPrefetch();
      // NOLINTNEXTLINE(bugprone-branch-clone): the tags differ
      if (some <= kLanes / 2)
        multiply_square(hn::CappedTag<float, kLanes / 2>(), p.depth, count, some, keys, queries,
                        square, ahead);
      else
        multiply_square(F32(), p.depth, count, some, keys, queries, square, ahead);
      std::fill(square + count * kLanes, square + kLanes * kLanes, 0.0F);
      unpack_panel(square, kLanes, kLanes, grouped.products[rotation] + row * kScoreStride + j,
                   kScoreStride);
    }
  }
}

// The same with <R q, R k>, where `blocks` are those of the rotation. second: [depth][kLanes], for
// the second columns of pairs, which are rotated with the first ones and multiplied later.
template <int kRows, class Number>
HWY_NOINLINE void multiply_rotated_range(const DecodeUnit& unit, KeyRange range,
                                         const SidePhases& phases,
                                         std::span<const RotatedColumns> blocks,
                                         const float* queries, float* copy, float* second,
                                         float* to) {
  const F32 d;
  constexpr int64_t kLines = kLanes * kColumnsAtOnce * int64_t{sizeof(Number)} / Prefetcher::kLine;
  const auto multiply_sixteen = [&](int64_t j, const KeyRows<Number>& keys,
                                    ColumnPrefetch& ahead) HWY_ATTR {
    const float* const turn = phases.of_panel(unit.keys.first + j);
    V sum[kRows];
    for (int i = 0; i < kRows; ++i) sum[i] = hn::Zero(d);
    const auto load_columns = [&](int64_t first, V* column) HWY_ATTR {
      sextant::HWY_NAMESPACE::load_eight_columns(
          d,
          [&](auto lanes, int row, int n)
              HWY_ATTR { return load_as(lanes, keys.data + row * keys.row_step + first + n); },
          column);
    };
    for (const RotatedColumns& block : blocks) {
      const int64_t c = (&block - blocks.data()) * kColumnsAtOnce;
      V column[kColumnsAtOnce];
      ahead.prefetch<kLines>();
      if (block.kind == RotatedColumns::kSecond) {
        for (int64_t n = 0; n < kColumnsAtOnce; ++n)
          column[n] = hn::LoadU(d, second + (c + n) * kLanes);
      } else {
        load_columns(c, column);
      }
      const float* at = turn + block.pair * 2 * kLanes;
      if (block.kind == RotatedColumns::kFirst) {
        V other[kColumnsAtOnce];
        load_columns(block.partner, other);
        for (int64_t n = 0; n < kColumnsAtOnce; ++n, at += 2 * kLanes) {
          rotate_vectors(at, column[n], other[n]);
          hn::StoreU(other[n], d, second + (block.partner + n) * kLanes);
        }
      } else if (block.kind == RotatedColumns::kNeighbours) {
        for (int64_t n = 0; n < kColumnsAtOnce; n += 2, at += 2 * kLanes)
          rotate_vectors(at, column[n], column[n + 1]);
      }
      for (int64_t n = 0; n < kColumnsAtOnce; ++n)
        for (int i = 0; i < kRows; ++i)
          sum[i] = hn::MulAdd(column[n], hn::Set(d, queries[(c + n) * kLanes + i]), sum[i]);
    }
    for (int i = 0; i < kRows; ++i) hn::StoreU(sum[i], d, to + i * kScoreStride + j);
  };
  for (int64_t j = range.first, stop; j < range.last;) {
    KeyStretch<Number> some = key_stretch<Number>(unit, {j, range.last}, copy);
    for (stop = j + some.count; j < stop; j += kLanes) {
      multiply_sixteen(j, some.keys, some.ahead);
      some.keys.data += kLanes * some.keys.row_step;
    }
  }
}

// The same for `rows` queries, rounded up to the first of the template's numbers that is enough.
template <int kRows, int... kMoreRows>
HWY_INLINE void multiply_rotated_as_lanes(int64_t rows, const DecodeUnit& unit, KeyRange range,
                                          const SidePhases& phases,
                                          std::span<const RotatedColumns> blocks,
                                          const float* queries, float* second, float* to) {
  if (rows <= kRows)
    return each_key_kind(unit, range, second + unit.keys.problem.depth16 * kLanes,
                         [&]<class Number>(const Number*, KeyRange some, float* int8) HWY_ATTR {
                           multiply_rotated_range<kRows, Number>(unit, some, phases, blocks,
                                                                 queries, int8, second, to);
                         });
  if constexpr (sizeof...(kMoreRows) > 0)
    multiply_rotated_as_lanes<kMoreRows...>(rows, unit, range, phases, blocks, queries, second, to);
}

// Multiplies whole panels of keys in place, without packing them, where vectors have kLanes lanes
// and queries are few. Returns the first column that is left.
HWY_INLINE int64_t multiply_rotated_keys(const DecodeUnit& unit, KeyRange columns, int64_t rows,
                                         size_t rotation, float* second,
                                         const GroupedQueries& grouped) {
  if constexpr (kVectors == 1) {
    const Problem& p = unit.keys.problem;
    RotatedColumns blocks[RotatedColumns::kMost];
    if (rows > kFewQueries || p.score.k.column_stride != 1 ||
        !rotated_columns(*p.rotations.list[rotation].key.rotation, p.depth, blocks))
      return columns.first;
    const int64_t whole = round_down(std::min(columns.last, unit.keys.rows), kLanes);
    if (whole <= columns.first) return columns.first;
    multiply_rotated_as_lanes<1, 2, 4, 8>(
        rows, unit, {columns.first, whole}, unit.keys.phases(rotation),
        {blocks, static_cast<size_t>(p.depth / kColumnsAtOnce)}, grouped.queries[rotation], second,
        grouped.products[rotation]);
    return whole;
  }
  return columns.first;
}

// <R q, R k> of all rows with the unit's `columns`, in one rotation. keys: room for their panels.
inline HWY_NOINLINE void multiply_packed_keys(const DecodeUnit& unit, KeyRange columns,
                                              int64_t rows, size_t rotation, const Panels& keys,
                                              const GroupedQueries& grouped) {
  const Problem& p = unit.keys.problem;
  // Enough blocks for a thin product; their panels stay in a near cache.
  constexpr int64_t kPiece = 4 * kLanes;
  const int64_t panel = kLanes * p.depth16;
  int64_t j = multiply_rotated_keys(unit, columns, rows, rotation, keys.rotated[rotation], grouped);
  for (; j < columns.last; j += kPiece) {
    const KeyRange piece = {j, std::min({j + kPiece, columns.last, unit.keys.rows})};
    pack_rows(
        {p, unit.keys.block, Side::kKey, unit.keys.first + piece.first, piece.last - piece.first},
        p.score.k, unit.key_head, 1, keys, {rotation, false});
    const int64_t blocks = round_up(piece.last - piece.first, kLanes) / kLanes;
    for (int64_t row = 0; row < rows; row += kLanes)
      multiply<Sum::kNew>(std::min(kLanes, rows - row), blocks, p.depth,
                          LeftColumns{grouped.queries[rotation] + row * p.depth16, kLanes},
                          RightPanels{keys.rotated[rotation], panel},
                          grouped.products[rotation] + row * kScoreStride + j, kScoreStride);
  }
}

// Products with the keys in every rotation that sees them.
inline void multiply_grouped(const DecodeUnit& unit, KeyRange columns, int64_t rows,
                             RotationsSeen seen, const Panels& keys,
                             const GroupedQueries& grouped) {
  for (size_t rotation = 0; rotation < unit.keys.problem.rotations.list.size(); ++rotation) {
    if (!seen.has(rotation)) continue;
    if (unit.keys.problem.rotations.list[rotation].key.rotation)
      multiply_packed_keys(unit, columns, rows, rotation, keys, grouped);
    else
      multiply_plain_keys(unit, columns, rows, rotation, keys.rotated[rotation], grouped);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
