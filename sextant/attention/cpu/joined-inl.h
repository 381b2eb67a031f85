// Few queries against one unit of keys, for all heads of a group at once: bound by memory.
//
// Keys are multiplied sixteen at a time, and values thirty-two, while those that come later are on their way. Each
// sum has the order that multiply() gives it, so a token decoded has the bits that it has in the whole text.
#if defined(SEXTANT_ATTENTION_CPU_JOINED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_JOINED_INL_H_
#undef SEXTANT_ATTENTION_CPU_JOINED_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_JOINED_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "hwy/cache_control.h"
#include "sextant/attention/cpu/forward.h"
#include "sextant/attention/cpu/multiply-inl.h"
#include "sextant/attention/cpu/prepare-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The first `rows` queries of each head, from the heads' panels.
inline HWY_NOINLINE void join_queries(const Problem& p, int64_t rows,
                                      const std::vector<Panels>& heads, const Joined& to) {
  for (size_t way = 0; way < p.ways.list.size(); ++way) {
    float* const panels = to.queries[way];
    std::fill_n(panels, to.rows16 * p.depth16, 0.0F);
    for (int64_t n = 0; n < p.group * rows; ++n) {
      const float* from = heads[static_cast<size_t>(n / rows)].turned[way] + n % rows;
      float* row = panels + round_down(n, kLanes) * p.depth16 + n % kLanes;
      for (int64_t c = 0; c < p.depth; ++c) row[c * kLanes] = from[c * kLanes];
    }
  }
}

// A unit of keys and values of one head.
struct JoinedUnit {
  FrameRows keys;
  int64_t key_head;
  int64_t
      stop;  // after the last row that is read before something else is, counted from the unit's first
};

inline constexpr int64_t kKeysAtOnce = 8;
inline constexpr int64_t kColumnsAtOnce = 8;
inline constexpr int64_t kValuesAtOnce = 2 * kLanes;
// Queries that keys in the lanes are best for; of more, queries are the lanes.
inline constexpr int64_t kFewQueries = kParts == 1 ? 8 : 4;

// Rows that will be wanted, asked for few at once between stretches of arithmetic, so that the processor always
// waits for some and asking costs the arithmetic little. (Asking at each step of a sum makes mixing a quarter
// slower.) Memory gives two streams faster than one, so keys and values are asked for alike whichever are being
// multiplied: at half the speed, and therefore up to half a unit ahead. (Keys that are packed are asked for as
// they are packed, too.)
class Ahead {
 public:
  // For `count` rows, of which all keys come before all values; `done` of the unit's come before them. calls: in
  // which they are asked for.
  Ahead(const JoinedUnit& unit, int64_t done, int64_t count, int64_t calls)
      : keys_(unit, unit.keys.problem.score.k, (done + kUnit) / 2 + kRowsAhead, count / 2),
        values_(unit, unit.keys.problem.score.v, done / 2 + kRowsAhead, count / 2),
        share_((keys_.left + values_.left + calls - 1) / std::max<int64_t>(calls, 1)) {}
  HWY_INLINE void operator()() {
    for (int64_t n = 0; n < share_; ++n) (keys_.left > values_.left ? keys_ : values_).ask();
  }

 private:
  struct Rows {
    const std::byte* at = nullptr;
    int64_t bytes, step, left = 0;

    Rows(const JoinedUnit& unit, const AnyView<const float>& x, int64_t first, int64_t count)
        : bytes(x.columns * x.element_size()), step(x.row_stride * x.element_size()) {
      if (x.column_stride != 1 || first >= unit.stop) return;
      at = static_cast<const std::byte*>(unit.keys.at(x, unit.key_head, first));
      left = std::min(count, unit.stop - first);
    }
    HWY_INLINE void ask() {  // for a row
      if (left <= 0) return;
      constexpr int64_t kLine = 64;
#if HWY_COMPILER_GCC_ACTUAL  // counting lines takes as long as asking for them; Clang unrolls by itself
#pragma GCC unroll 4
#endif
      for (int64_t byte = 0; byte < bytes; byte += kLine) hwy::Prefetch(at + byte);
      at += step;
      --left;
    }
  };

  Rows keys_, values_;
  int64_t share_;
};

// to[key][query] = the product of kKeys rows of keys and the queries in the lanes of `d` of a panel. The
// rows are read as they lie, so nothing is packed. Sums have the
// order of multiply().
template <int kKeys, class D>
HWY_INLINE void multiply_rows_of_keys(D d, int64_t depth, Left keys, const float* queries,
                                      float* to, Ahead& ahead) {
  hn::Vec<D> sum[kKeys];
  for (int i = 0; i < kKeys; ++i) sum[i] = hn::Zero(d);
  for (int64_t c = 0; c < depth; c += kLanes) {
    ahead();
    const int64_t stop = std::min(c + kLanes, depth);
    for (int64_t n = c; n < stop; ++n) {
      const auto query = hn::LoadU(d, queries + n * kLanes);
      for (int i = 0; i < kKeys; ++i)
        sum[i] = hn::MulAdd(hn::Set(d, keys.data[i * keys.row_step]), query, sum[i]);
      keys.data += keys.depth_step;
    }
  }
  for (int i = 0; i < kKeys; ++i) hn::StoreU(sum[i], d, to + i * kLanes);
}

// The products of kLanes keys (`count` of them there) with up to kLanes queries, as a square
// [key][query].
template <class D>
HWY_NOINLINE void multiply_square(D d, int64_t depth, int64_t count, int64_t rows, Left keys,
                                  const float* queries, float* square, Ahead ahead) {
  for (int64_t lane = 0; lane < rows; lane += static_cast<int64_t>(hn::MaxLanes(d))) {
    int64_t j = 0;
    const auto from = [&]() -> Left {
      return {keys.data + j * keys.row_step, keys.row_step, keys.depth_step};
    };
    for (; j + kKeysAtOnce <= count; j += kKeysAtOnce)
      multiply_rows_of_keys<kKeysAtOnce>(d, depth, from(), queries + lane,
                                         square + j * kLanes + lane, ahead);
    for (; j < count; ++j)
      multiply_rows_of_keys<1>(d, depth, from(), queries + lane, square + j * kLanes + lane, ahead);
  }
}

// The products of kLanes keys, whose rows lie as they are, with kRows queries of a panel: to[query][key]. Keys are
// the lanes, eight columns at a time, which fills vectors where queries are few. Sums have the order of multiply().
template <int kRows>
HWY_NOINLINE void multiply_columns_of_keys(int64_t depth, Left keys, const float* queries,
                                           float* to, Ahead ahead) {
  const F32 d;
  V sum[kRows][kParts];
  for (int i = 0; i < kRows; ++i)
    for (int p = 0; p < kParts; ++p) sum[i][p] = hn::Zero(d);
  for (int64_t c = 0; c < depth; c += kColumnsAtOnce) {
    if (c % kLanes == 0) ahead();
    for (int p = 0; p < kParts; ++p) {
      V column[kColumnsAtOnce];
      sextant::HWY_NAMESPACE::load_eight_columns(d, keys.data + p * kPart * keys.row_step + c,
                                                 keys.row_step, column);
#if HWY_COMPILER_GCC_ACTUAL  // which else keeps columns in memory
#pragma GCC unroll 8
#endif
      for (int64_t n = 0; n < kColumnsAtOnce; ++n)
        for (int i = 0; i < kRows; ++i)
          sum[i][p] = hn::MulAdd(column[n], hn::Set(d, queries[(c + n) * kLanes + i]), sum[i][p]);
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int p = 0; p < kParts; ++p) hn::StoreU(sum[i][p], d, to + i * kScoreRow + p * kPart);
}

// The same of so many queries, and maybe some more: as many as the first of the numbers that is enough.
template <int kRows, int... kMoreRows>
HWY_INLINE void multiply_columns_of_keys_by(int64_t rows, int64_t depth, Left keys,
                                            const float* queries, float* to, Ahead ahead) {
  if constexpr (kRows <= kFewQueries)
    if (rows <= kRows) return multiply_columns_of_keys<kRows>(depth, keys, queries, to, ahead);
  if constexpr (sizeof...(kMoreRows) > 0)
    multiply_columns_of_keys_by<kMoreRows...>(rows, depth, keys, queries, to, ahead);
}

// <q, k> of all rows with `columns` of the unit's keys, none of which is turned. wide: room for sixteen
// of them in float32.
inline HWY_NOINLINE void multiply_plain_keys(const JoinedUnit& unit, Run columns, int64_t rows,
                                             size_t way, float* wide, const Joined& joined) {
  const Problem& p = unit.keys.problem;
  const AnyView<const float>& k = p.score.k;
  HWY_ALIGN float square[kLanes * kLanes] = {};
  for (int64_t j = columns.first; j < columns.last; j += kLanes) {
    const int64_t count = std::min(kLanes, unit.keys.rows - j);
    Left keys = {wide, p.depth16, 1};
    if (k.format == Format::kWide)
      keys = {static_cast<const float*>(unit.keys.at(k, unit.key_head, j)), k.row_stride,
              k.column_stride};
    else
      copy_some(unit.keys, k, unit.key_head, {j, j + count}, wide);
    for (int64_t row = 0; row < rows; row += kLanes) {
      const int64_t some = std::min(kLanes, rows - row);
      const float* queries = joined.queries[way] + row * p.depth16;
      float* const to = joined.products[way] + row * kScoreRow + j;
      const bool by_columns = some <= kFewQueries && count == kLanes && keys.depth_step == 1 &&
                              p.depth % kColumnsAtOnce == 0;
      const Ahead ahead(unit, j, row == 0 ? kLanes : 0,
                        (by_columns ? 1 : kLanes / kKeysAtOnce) * (p.depth16 / kLanes));
      if (by_columns) {
        multiply_columns_of_keys_by<1, 2, 4, 8>(some, p.depth, keys, queries, to, ahead);
        continue;
      }
      // NOLINTNEXTLINE(bugprone-branch-clone): the tags differ
      if (some <= kLanes / 2)
        multiply_square(hn::CappedTag<float, kLanes / 2>(), p.depth, count, some, keys, queries,
                        square, ahead);
      else
        multiply_square(F32(), p.depth, count, some, keys, queries, square, ahead);
      std::fill(square + count * kLanes, square + kLanes * kLanes, 0.0F);
      unpack_panel(square, kLanes, kLanes, to, kScoreRow);
    }
  }
}

// <turn q, turn k> of all rows with the unit's `columns`, in any way. keys: room for panels of them.
inline HWY_NOINLINE void multiply_packed_keys(const JoinedUnit& unit, Run columns, int64_t rows,
                                              size_t way, const Panels& keys,
                                              const Joined& joined) {
  const Problem& p = unit.keys.problem;
  // As many blocks as a thin product wants; their panels stay in a near cache.
  constexpr int64_t kPiece = 4 * kLanes;
  const int64_t panel = kLanes * p.depth16;
  for (int64_t j = columns.first; j < columns.last; j += kPiece) {
    const Run piece = {j, std::min({j + kPiece, columns.last, unit.keys.rows})};
    pack_rows(
        {p, unit.keys.block, Side::kKey, unit.keys.first + piece.first, piece.last - piece.first},
        p.score.k, unit.key_head, 1, keys, {way, false});
    const int64_t blocks = round_up(piece.last - piece.first, kLanes) / kLanes;
    Ahead ahead(unit, j, kPiece, p.depth / steps_between(rows));
    for (int64_t row = 0; row < rows; row += kLanes)
      multiply<Sum::kNew>(
          std::min(kLanes, rows - row), blocks, p.depth,
          {joined.queries[way] + row * p.depth16, 1, kLanes}, {keys.turned[way], kLanes, panel},
          joined.products[way] + row * kScoreRow + j, kScoreRow, [&ahead]() HWY_ATTR { ahead(); });
  }
}

// Products with the keys in every way. seen: which ways see them.
inline void multiply_joined(const JoinedUnit& unit, Run columns, int64_t rows, WaysSeen seen,
                            const Panels& keys, const Joined& joined) {
  for (size_t way = 0; way < unit.keys.problem.ways.list.size(); ++way) {
    if (!seen.has(way)) continue;
    if (unit.keys.problem.ways.list[way].key.rotation)
      multiply_packed_keys(unit, columns, rows, way, keys, joined);
    else
      multiply_plain_keys(unit, columns, rows, way, keys.turned[way], joined);
  }
}

// Values mixed by the weights of all rows, and the sums of weights, into joined.unit. What lies in memory
// as it is mixed is read there; else a few rows are brought into `copy` just before they are mixed, the
// next ones in their place, for so it stays in the L1 cache.
inline HWY_NOINLINE void mix_joined(const JoinedUnit& unit, Run seen, int64_t rows, float* copy,
                                    const Joined& joined) {
  const Problem& p = unit.keys.problem;
  const AnyView<const float>& v = p.score.v;
  const bool narrow = v.format != Format::kWide;
  const Matrix values =
      narrow ? Matrix{copy, p.width16} : whole_rows(unit.keys, v, unit.key_head, copy);
  const int64_t blocks = p.width16 / kLanes;
  const int64_t tiles = round_up(rows * blocks, kUsualTile) / kUsualTile;
  std::fill_n(joined.unit.out, rows * p.width16, 0.0F);
  std::fill_n(joined.unit.sum, round_up(rows, kStrip), 0.0F);
  // Tiles load and store what they add to, which wants many values; those of all tiles stay near.
  for (int64_t j = seen.first; j < seen.last; j += kValuesAtOnce) {
    const int64_t count = std::min(kValuesAtOnce, seen.last - j);
    Ahead ahead(unit, kUnit + j, kValuesAtOnce, kValuesAtOnce / steps_between(rows) * tiles);
    if (narrow) copy_some(unit.keys, v, unit.key_head, {j, j + count}, copy);
    const float* from = values.data + (narrow ? 0 : j * values.stride);
    for (int64_t row = 0; row < rows; row += kStrip)
      multiply_and_total<Sum::kAdded>(std::min(kStrip, rows - row), blocks, count,
                                      joined.weight_panels + row * kUnit + j * kStrip,
                                      {from, values.stride, kLanes},
                                      joined.unit.out + row * p.width16, p.width16,
                                      joined.unit.sum + row, [&ahead]() HWY_ATTR { ahead(); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
