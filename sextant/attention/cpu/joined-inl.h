// Few queries against one unit of keys, for all heads of a group at once: bound by memory.
//
// Keys are multiplied sixteen or thirty-two at a time, and values sixty-four, while those that come later are on their
// way. Each sum has the order that multiply() gives it, so a token decoded has the bits that it has in the whole text.
#if defined(SEXTANT_ATTENTION_CPU_JOINED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_JOINED_INL_H_
#undef SEXTANT_ATTENTION_CPU_JOINED_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_JOINED_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "sextant/attention/cpu/forward.h"
#include "sextant/attention/cpu/lines_ahead.h"
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
inline constexpr int64_t kValuesAtOnce = 4 * kLanes;
// Steps of a product of kKeysAtOnce keys for which one line of keys and one of values are wanted.
inline constexpr int64_t kStepsOfRows = 2 * kLanes / kKeysAtOnce;
// Queries that keys in the lanes are best for; of more, queries are the lanes.
inline constexpr int64_t kFewQueries = kParts == 1 ? 8 : 4;

// Rows that will be wanted, asked for line by line among the steps of the arithmetic (where a row or two were asked for
// at once, a core had little else to do meanwhile: an eighth more time for eight queries on a Granite Rapids). Memory
// gives two streams faster than one, so keys and values are asked for alike whichever are being multiplied: at half the
// speed, and therefore up to half a unit ahead. (Keys that are packed are asked for as they are packed, too.)
class Ahead {
 public:
  // For `count` rows, of which all keys come before all values; `done` of the unit's come before them. lines: of keys
  // and of values, to ask for in each call.
  Ahead(const JoinedUnit& unit, int64_t done, int64_t count, int64_t lines = 1)
      : keys_(
            lines_of(unit, unit.keys.problem.score.k, (done + kUnit) / 2 + kRowsAhead, count / 2)),
        values_(lines_of(unit, unit.keys.problem.score.v, done / 2 + kRowsAhead, count / 2)),
        lines_(lines) {}
  // How many those are if `count` rows are asked for in so many calls.
  static int64_t lines(const JoinedUnit& unit, int64_t count, int64_t calls) {
    const Score<float>& s = unit.keys.problem.score;
    const int64_t bytes =
        std::max(s.k.columns * s.k.element_size(), s.v.columns * s.v.element_size());
    const int64_t all = count / 2 * ((bytes + LinesAhead::kLine - 1) / LinesAhead::kLine);
    calls = std::max<int64_t>(calls, 1);
    return (all + calls - 1) / calls;
  }
  HWY_INLINE void operator()() {
    for (int64_t n = 0; n < lines_; ++n) one();
  }
  HWY_INLINE void one() {
    keys_.ask();
    values_.ask();
  }

 private:
  static LinesAhead lines_of(const JoinedUnit& unit, const AnyView<const float>& x, int64_t first,
                             int64_t count) {
    count = std::min(count, unit.stop - first);
    if (count <= 0) return {};
    return {unit.keys.at(x, unit.key_head, first), x, count};
  }

  LinesAhead keys_, values_;
  int64_t lines_;
};

// Keys wherever they lie.
struct KeysAt {
  const float* data;
  int64_t row_step, column_step;
};

// to[key][query] = the product of kKeys rows of keys and the queries in the lanes of `d` of a panel. The
// rows are read as they lie, so nothing is packed. Sums have the
// order of multiply().
template <int kKeys, class D>
HWY_INLINE void multiply_rows_of_keys(D d, int64_t depth, KeysAt keys, const float* queries,
                                      float* to, Ahead& ahead) {
  hn::Vec<D> sum[kKeys];
  for (int i = 0; i < kKeys; ++i) sum[i] = hn::Zero(d);
  for (int64_t c = 0; c < depth; c += kStepsOfRows) {
    ahead();
    const int64_t stop = std::min(c + kStepsOfRows, depth);
    for (int64_t n = c; n < stop; ++n) {
      const auto query = hn::LoadU(d, queries + n * kLanes);
      for (int i = 0; i < kKeys; ++i)
        sum[i] = hn::MulAdd(hn::Set(d, keys.data[i * keys.row_step]), query, sum[i]);
      keys.data += keys.column_step;
    }
  }
  for (int i = 0; i < kKeys; ++i) hn::StoreU(sum[i], d, to + i * kLanes);
}

// The products of kLanes keys (`count` of them there) with up to kLanes queries, as a square
// [key][query].
template <class D>
HWY_NOINLINE void multiply_square(D d, int64_t depth, int64_t count, int64_t rows, KeysAt keys,
                                  const float* queries, float* square, Ahead ahead) {
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

// Rows of keys where they lie, beside each other's columns.
template <class Number>  // float, Bfloat16 or Float16
struct KeyRows {
  const Number* data;
  int64_t row_step;
};

// Columns of so many keys for which one line of keys and one of values are wanted.
template <int kSquares, class Number>
inline constexpr int64_t kStepsOfColumns = 2 / kSquares * sizeof(float) / sizeof(Number);

// The products of kSquares times sixteen keys with kRows queries of a panel: to[query][key]. Keys are the lanes,
// eight columns at a time, which fills vectors where queries are few. Sums have the order of multiply().
template <int kRows, int kSquares, class Number>
HWY_NOINLINE void multiply_columns_of_keys(int64_t depth, KeyRows<Number> keys,
                                           const float* queries, float* to, Ahead& ahead) {
  const F32 d;
  // As many vectors of keys at once as have registers for their columns: a query's number is spread once for them.
  constexpr int kVectors = kSquares * kParts, kTogether = std::max(1, kSquares / kParts);
  // Rows are found from one of eight (or less), so that there are registers for where they are.
  constexpr int kNear = std::min(kPart, 8);
  const int64_t near_step = kNear * keys.row_step;
  V sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i)
    for (int p = 0; p < kVectors; ++p) sum[i][p] = hn::Zero(d);
  for (int64_t c = 0; c < depth; c += kColumnsAtOnce) {
    for (int p = 0; p < kVectors; p += kTogether) {
      V column[kTogether][kColumnsAtOnce];
      for (int t = 0; t < kTogether; ++t)
        sextant::HWY_NAMESPACE::load_eight_columns(
            d,
            [&](auto lanes, int row, int n) HWY_ATTR {
              const int key = (p + t) * kPart + row;
              return load_as(lanes,
                             keys.data + key / kNear * near_step + key % kNear * keys.row_step + n);
            },
            column[t]);
#if HWY_COMPILER_GCC_ACTUAL  // which else keeps columns in memory
#pragma GCC unroll 8
#endif
      for (int64_t n = 0; n < kColumnsAtOnce; ++n) {
        if (p == 0 && n % kStepsOfColumns<kSquares, Number> == 0) ahead.one();
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
    for (int p = 0; p < kVectors; ++p) hn::StoreU(sum[i][p], d, to + i * kScoreRow + p * kPart);
}

// The same of so many queries, and maybe some more: as many as the first of the numbers that is enough.
template <int kSquares, int kRows, int... kMoreRows, class Number>
HWY_INLINE void multiply_columns_of_keys_by(int64_t rows, int64_t depth, KeyRows<Number> keys,
                                            const float* queries, float* to, Ahead& ahead) {
  if constexpr (kRows <= kFewQueries)
    if (rows <= kRows)
      return multiply_columns_of_keys<kRows, kSquares>(depth, keys, queries, to, ahead);
  if constexpr (sizeof...(kMoreRows) > 0)
    multiply_columns_of_keys_by<kSquares, kMoreRows...>(rows, depth, keys, queries, to, ahead);
}

// <q, k> of few queries with sixteen keys of the unit from `key` on, or thirty-two if there are so many until
// `stop`. Returns how many.
inline int64_t multiply_keys_as_lanes(const JoinedUnit& unit, int64_t key, int64_t stop,
                                      int64_t rows, const float* queries, float* to) {
  const Problem& p = unit.keys.problem;
  const AnyView<const float>& k = p.score.k;
  const bool two = kParts == 1 && 2 * kLanes <= std::min(stop - key, unit.keys.together(key));
  const int64_t count = two ? 2 * kLanes : kLanes;
  Ahead ahead(unit, key, count);
  with_type(k.format, unit.keys.at(k, unit.key_head, key), [&](const auto* from) HWY_ATTR {
    const KeyRows<std::remove_cvref_t<decltype(*from)>> keys = {from, k.row_stride};
    if (kParts == 1 && two)
      multiply_columns_of_keys_by<kParts == 1 ? 2 : 1, 1, 2, 4, 8>(rows, p.depth, keys, queries, to,
                                                                   ahead);
    else
      multiply_columns_of_keys_by<1, 1, 2, 4, 8>(rows, p.depth, keys, queries, to, ahead);
  });
  return count;
}

// <q, k> of all rows with `columns` of the unit's keys, none of which is turned. wide: room for sixteen
// of them in float32.
inline HWY_NOINLINE void multiply_plain_keys(const JoinedUnit& unit, Run columns, int64_t rows,
                                             size_t way, float* wide, const Joined& joined) {
  const Problem& p = unit.keys.problem;
  const AnyView<const float>& k = p.score.k;
  const bool few = rows <= kFewQueries && k.column_stride == 1 && p.depth % kColumnsAtOnce == 0;
  HWY_ALIGN float square[kLanes * kLanes] = {};
  const int64_t lines = Ahead::lines(unit, kLanes, kLanes / kKeysAtOnce * (p.depth / kStepsOfRows));
  for (int64_t j = columns.first, step; j < columns.last; j += step) {
    const int64_t count = std::min(kLanes, unit.keys.rows - j);
    if (few && count == kLanes) {
      step = multiply_keys_as_lanes(unit, j, columns.last, rows, joined.queries[way],
                                    joined.products[way] + j);
      continue;
    }
    step = kLanes;
    KeysAt keys = {wide, p.depth16, 1};
    if (k.format == Format::kWide)
      keys = {static_cast<const float*>(unit.keys.at(k, unit.key_head, j)), k.row_stride,
              k.column_stride};
    else
      copy_some(unit.keys, k, unit.key_head, {j, j + count}, wide);
    for (int64_t row = 0; row < rows; row += kLanes) {
      const int64_t some = std::min(kLanes, rows - row);
      const float* queries = joined.queries[way] + row * p.depth16;
      const Ahead ahead(unit, j, row == 0 ? kLanes : 0, lines);
      // NOLINTNEXTLINE(bugprone-branch-clone): the tags differ
      if (some <= kLanes / 2)
        multiply_square(hn::CappedTag<float, kLanes / 2>(), p.depth, count, some, keys, queries,
                        square, ahead);
      else
        multiply_square(F32(), p.depth, count, some, keys, queries, square, ahead);
      std::fill(square + count * kLanes, square + kLanes * kLanes, 0.0F);
      unpack_panel(square, kLanes, kLanes, joined.products[way] + row * kScoreRow + j, kScoreRow);
    }
  }
}

// About how many a product has.
constexpr int64_t tiles(int64_t rows, int64_t blocks) {
  return round_up(rows * blocks, kUsualTile) / kUsualTile;
}

// <turn q, turn k> of all rows with the unit's `columns`, in any way. keys: room for panels of them.
inline HWY_NOINLINE void multiply_packed_keys(const JoinedUnit& unit, Run columns, int64_t rows,
                                              size_t way, const Panels& keys,
                                              const Joined& joined) {
  const Problem& p = unit.keys.problem;
  // As many blocks as a thin product wants; their panels stay in a near cache.
  constexpr int64_t kPiece = 4 * kLanes;
  const int64_t panel = kLanes * p.depth16;
  const int64_t lines =
      Ahead::lines(unit, kPiece, p.depth / steps_between(rows) * tiles(rows, kPiece / kLanes));
  for (int64_t j = columns.first; j < columns.last; j += kPiece) {
    const Run piece = {j, std::min({j + kPiece, columns.last, unit.keys.rows})};
    pack_rows(
        {p, unit.keys.block, Side::kKey, unit.keys.first + piece.first, piece.last - piece.first},
        p.score.k, unit.key_head, 1, keys, {way, false});
    const int64_t blocks = round_up(piece.last - piece.first, kLanes) / kLanes;
    Ahead ahead(unit, j, kPiece, lines);
    for (int64_t row = 0; row < rows; row += kLanes)
      multiply<Sum::kNew>(std::min(kLanes, rows - row), blocks, p.depth,
                          LeftColumns{joined.queries[way] + row * p.depth16, kLanes},
                          RightPanels{keys.turned[way], panel},
                          joined.products[way] + row * kScoreRow + j, kScoreRow,
                          [&ahead]() HWY_ATTR { ahead(); });
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

// Values mixed by the weights of all rows, and the sums of weights, into joined.unit. Those that lie as they are
// mixed are read there; else a few are brought into `copy` just before, the next ones in their place, for so it
// stays in the L1 cache.
inline HWY_NOINLINE void mix_joined(const JoinedUnit& unit, Run seen, int64_t rows, float* copy,
                                    const Joined& joined) {
  const Problem& p = unit.keys.problem;
  const AnyView<const float>& v = p.score.v;
  const bool whole = has_whole_rows(v);
  const int64_t blocks = p.width16 / kLanes;
  const int64_t lines =
      Ahead::lines(unit, kValuesAtOnce, kValuesAtOnce / steps_between(rows) * tiles(rows, blocks));
  std::fill_n(joined.unit.out, rows * p.width16, 0.0F);
  std::fill_n(joined.unit.sum, round_up(rows, kStrip), 0.0F);
  // Tiles load and store what they add to, which wants many values; those of all tiles stay near.
  for (int64_t j = seen.first, count; j < seen.last; j += count) {
    count = std::min({kValuesAtOnce, seen.last - j, unit.keys.together(j)});
    Ahead ahead(unit, kUnit + j, kValuesAtOnce, lines);
    const auto mix = [&](const auto* from, int64_t stride) HWY_ATTR {
      using Number = std::remove_cvref_t<decltype(*from)>;
      for (int64_t row = 0; row < rows; row += kStrip)
        multiply_and_total<Sum::kAdded>(std::min(kStrip, rows - row), blocks, count,
                                        joined.weight_panels + row * kUnit + j * kStrip,
                                        RightRowsOf<Number>{from, stride},
                                        joined.unit.out + row * p.width16, p.width16,
                                        joined.unit.sum + row, [&ahead]() HWY_ATTR { ahead(); });
    };
    if (whole) {
      with_type(v.format, unit.keys.at(v, unit.key_head, j),
                [&](const auto* from) HWY_ATTR { mix(from, v.row_stride); });
    } else {
      copy_some(unit.keys, v, unit.key_head, {j, j + count}, copy);
      mix(static_cast<const float*>(copy), p.width16);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
