// Few queries against one unit of keys, for all heads of a group at once: bound by memory.
//
// Keys are multiplied some rows at a time, and values likewise, while those that come next are on
// their way into the L1 cache. Each sum has the order that multiply() gives it, so a token decoded
// has the bits that it has in the whole text.
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_DECODE_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The first `rows` queries of each head, from the heads' panels.
inline HWY_NOINLINE void join_queries(const Problem& p, int64_t rows,
                                      const std::vector<Panels>& heads, const GroupedQueries& to) {
  for (size_t rotation = 0; rotation < p.rotations.list.size(); ++rotation) {
    float* const panels = to.queries[rotation];
    std::fill_n(panels, to.rows16 * p.depth16, 0.0F);
    for (int64_t n = 0; n < p.group * rows; ++n) {
      const float* from = heads[static_cast<size_t>(n / rows)].rotated[rotation] + n % rows;
      float* row = panels + round_down(n, kLanes) * p.depth16 + n % kLanes;
      for (int64_t c = 0; c < p.depth; ++c) row[c * kLanes] = from[c * kLanes];
    }
  }
}

// A unit of keys and values of one head. Rows count from its first.
struct DecodeUnit {
  FrameRows keys;
  int64_t key_head;
  KeyRange seen;  // that are read
  int64_t stop;   // after the last that is read before something else is
  int64_t ahead;  // rows are asked for so many rows before they are read
};

inline constexpr int64_t kKeysAtOnce = 8;
inline constexpr int64_t kColumnsAtOnce = 8;
// So many rows of keys or values, and as many that are asked for meanwhile, stay in the L1 cache.
// More queries are multiplied with sixteen keys, or a few values, at a time, whose lines must all
// have come when the first is read.
inline int64_t rows_at_once(const Score<float>& s, int64_t queries) {
  const int64_t bytes = kVectors == 1 && queries > kThinRows ? 16384 : 8192;
  const int64_t each = std::max(s.k.columns * s.k.element_size(), s.v.columns * s.v.element_size());
  return std::clamp(round_down(bytes / std::max<int64_t>(each, 1), kLanes), kLanes, 4 * kLanes);
}
// Queries that keys in the lanes are best for; of more, queries are the lanes.
inline constexpr int64_t kFewQueries = kVectors == 1 ? 8 : 4;

enum class Reads { kKeys, kValues };

// Rows of a unit that lie together, and those that are read soon, which do, too.
struct Stretch {
  int64_t count;
  const void* at;
  const AnyView<const float>* soon_of = nullptr;  // null: none
  const void* soon_at = nullptr;
  int64_t soon_count = 0;
};

// From the unit's `first` on. Values follow keys, and the next unit's keys those.
inline Stretch stretch_of(const DecodeUnit& unit, Reads reads, int64_t first) {
  const Score<float>& s = unit.keys.problem.score;
  const bool keys = reads == Reads::kKeys;
  const AnyView<const float>* of = keys ? &s.k : &s.v;
  const int64_t last = round_up(unit.seen.last, kLanes);
  int64_t soon = first + unit.ahead;
  Stretch to = {std::min(unit.keys.in_page(first), last - first),
                unit.keys.at(*of, unit.key_head, first)};
  if (soon < last) {
    to.count = std::min(to.count, last - soon);
  } else {
    of = keys ? &s.v : &s.k;
    if (keys) soon += unit.seen.first - last;
  }
  const int64_t left = std::min(unit.stop - soon, unit.keys.in_page(soon));
  if (left <= 0 || of->column_stride != 1) return to;
  to.count = std::min(to.count, round_up(left, kLanes));
  to.soon_of = of;
  to.soon_at = unit.keys.at(*of, unit.key_head, soon);
  to.soon_count = std::min(to.count, left);
  return to;
}

// Those, asked for in the order in which they lie, one line among the steps of the arithmetic for
// each that is read: so they come as they are used up, and in bursts of four or eight they took 5
// to 10 % longer on a Zen 5. No processor's own prefetching follows rows that are read in step.
class ColumnPrefetch {
 public:
  ColumnPrefetch() = default;  // asks for nothing
  explicit ColumnPrefetch(const Stretch& rows) {
    if (rows.soon_of) lines_ = {rows.soon_at, *rows.soon_of, rows.soon_count};
  }
  // For so many lines.
  template <int64_t kCount>
  HWY_INLINE void prefetch() {
    for (int64_t n = 0; n < kCount; ++n) lines_.prefetch<Prefetcher::Into::kL1Once>();
  }

 private:
  Prefetcher lines_;
};

// Keys wherever they lie.
struct KeysAt {
  const float* data;
  int64_t row_step, column_step;
};

// to[key][query] = the product of kKeys rows of keys and the queries in the lanes of `d` of a
// panel. The rows are read as they lie, so nothing is packed. Sums have the order of multiply().
template <int kKeys, class D>
HWY_INLINE void multiply_rows_of_keys(D d, int64_t depth, KeysAt keys, const float* queries,
                                      float* to, ColumnPrefetch& ahead) {
  hn::Vec<D> sum[kKeys];
  for (int i = 0; i < kKeys; ++i) sum[i] = hn::Zero(d);
  constexpr int64_t kSteps = kLanes / kKeys;  // that read as much as a line
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

// The products of kLanes keys (`count` of them there) with up to kLanes queries, as a square
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

// Rows of keys where they lie, beside each other's columns.
template <class Number>  // float, Bfloat16 or Float16
struct KeyRows {
  const Number* data;
  int64_t row_step;
};

// The products of kSquares times kLanes keys with kRows queries of a panel: to[query][key]. Keys
// are the lanes, eight columns at a time, which fills vectors where queries are few. Sums have the
// order of multiply().
template <int kRows, int kSquares, class Number>
HWY_INLINE void multiply_columns_of_keys(int64_t depth, KeyRows<Number> keys, const float* queries,
                                         float* to, ColumnPrefetch& ahead) {
  const F32 d;
  // As many vectors of keys at once as have registers for their columns: a query's number is spread
  // once for them.
  constexpr int kTileVectors = kSquares * kVectors, kTogether = std::max(1, kSquares / kVectors);
  // Rows are found from one of eight (or less), so that there are registers for where they are.
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
#if HWY_COMPILER_GCC_ACTUAL  // which else keeps columns in memory
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

// <q, k> of kRows queries with the unit's keys `range`, as they lie.
template <int kRows, class Number>
HWY_NOINLINE void multiply_key_range(const DecodeUnit& unit, KeyRange range, const float* queries,
                                     float* to) {
  const Problem& p = unit.keys.problem;
  const AnyView<const float>& k = p.score.k;
  const int64_t in_step = kVectors == 1 ? rows_at_once(p.score, 1) : 0;
  for (int64_t j = range.first; j < range.last;) {
    const Stretch stretch = stretch_of(unit, Reads::kKeys, j);
    KeyRows<Number> keys = {static_cast<const Number*>(stretch.at), k.row_stride};
    ColumnPrefetch ahead(stretch);
    const int64_t stop = std::min(j + stretch.count, range.last);
    const auto multiply_some = [&](auto squares) HWY_ATTR {
      multiply_columns_of_keys<kRows, squares()>(p.depth, keys, queries, to + j, ahead);
      keys.data += squares() * kLanes * keys.row_step;
      return squares() * kLanes;
    };
    if constexpr (kVectors == 1)
      while (std::min(in_step, stop - j) >= 2 * kLanes)
        j += multiply_some(std::integral_constant<int, 2>());
    while (j < stop) j += multiply_some(std::integral_constant<int, 1>());
  }
}

// The same of so many queries, and maybe some more: as many as the first of the numbers that is
// enough.
template <int kRows, int... kMoreRows>
HWY_INLINE void multiply_keys_as_lanes(int64_t rows, const DecodeUnit& unit, KeyRange range,
                                       const float* queries, float* to) {
  if constexpr (kRows <= kFewQueries)
    if (rows <= kRows)
      return with_type(unit.keys.problem.score.k.format, nullptr, [&](const auto* none) HWY_ATTR {
        multiply_key_range<kRows, std::remove_cvref_t<decltype(*none)>>(unit, range, queries, to);
      });
  if constexpr (sizeof...(kMoreRows) > 0)
    multiply_keys_as_lanes<kMoreRows...>(rows, unit, range, queries, to);
}

// <q, k> of all rows with `columns` of the unit's keys, none of which is turned. wide: room for
// sixteen of them in float32.
inline HWY_NOINLINE void multiply_plain_keys(const DecodeUnit& unit, KeyRange columns, int64_t rows,
                                             size_t rotation, float* wide,
                                             const GroupedQueries& grouped) {
  const Problem& p = unit.keys.problem;
  const AnyView<const float>& k = p.score.k;
  int64_t j = columns.first;
  if (rows <= kFewQueries && k.column_stride == 1 && p.depth % kColumnsAtOnce == 0) {
    const int64_t whole = round_down(std::min(columns.last, unit.keys.rows), kLanes);
    multiply_keys_as_lanes<1, 2, 4, 8>(rows, unit, {j, whole}, grouped.queries[rotation],
                                       grouped.products[rotation]);
    j = std::max(j, whole);
  }
  HWY_ALIGN float square[kLanes * kLanes] = {};
  for (; j < columns.last; j += kLanes) {
    const int64_t count = std::min(kLanes, unit.keys.rows - j);
    KeysAt keys = {wide, p.depth16, 1};
    if (k.format == Format::kWide)
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

// <turn q, turn k> of all rows with the unit's `columns`, in any way. keys: room for panels of
// them.
inline HWY_NOINLINE void multiply_packed_keys(const DecodeUnit& unit, KeyRange columns,
                                              int64_t rows, size_t rotation, const Panels& keys,
                                              const GroupedQueries& grouped) {
  const Problem& p = unit.keys.problem;
  // As many blocks as a thin product wants; their panels stay in a near cache.
  constexpr int64_t kPiece = 4 * kLanes;
  const int64_t panel = kLanes * p.depth16;
  for (int64_t j = columns.first; j < columns.last; j += kPiece) {
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

// Products with the keys in every way. seen: which ways see them.
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

// While rows are read, asks for as many that are read soon: in the order in which they lie, if they
// lie one behind the other, or else for the columns that are being read.
template <class Number>
struct RowPrefetch {
  const Number* read;      // the first row that is read
  const std::byte* first;  // what is asked for beside it
  int64_t rows = 0;        // whose lines are asked for before those beside the next columns
  int64_t row = 0;         // bytes from a row that is asked for to the next
  bool in_order = false;   // as they lie

  static constexpr int lines(int blocks) {
    constexpr int kColumnBlock = static_cast<int>(kLanes * sizeof(Number));
    return (blocks * kColumnBlock + static_cast<int>(Prefetcher::kLine) - 1) /
           static_cast<int>(Prefetcher::kLine);
  }
  // But what is read anyhow.
  RowPrefetch nothing() const { return {read, reinterpret_cast<const std::byte*>(read)}; }
  // Beside the first row of a tile whose columns begin at `at`.
  HWY_INLINE const std::byte* start(const Number* at, int) const {
    return first + (at - read) * static_cast<int64_t>(sizeof(Number)) * rows;
  }
  HWY_INLINE int64_t step_of(int lines) const { return in_order ? lines * Prefetcher::kLine : row; }
  HWY_INLINE int64_t step(int blocks) const { return step_of(lines(blocks)); }
};

// Of `count` rows from `read` on, the n-th of a stretch.
template <class Number>
RowPrefetch<Number> rows_ahead(const Stretch& rows, const Number* read, int64_t n, int64_t count) {
  if (!rows.soon_of) return {read, reinterpret_cast<const std::byte*>(read)};
  const AnyView<const float>& x = *rows.soon_of;
  const int64_t row = x.row_stride * x.element_size();
  const bool in_order = x.row_stride == x.columns;
  return {read, static_cast<const std::byte*>(rows.soon_at) + n * row, in_order ? count : 1, row,
          in_order};
}

// What a tile of kRows rows of weights from kFirst on, of kAll that read the same, asks for of
// that: its share of lines.
template <int kFirst, int kRows, int kAll, class Number>
struct ShareOfRowsAhead {
  const RowPrefetch<Number>& all;

  static constexpr int lines(int blocks, int rows) {
    return RowPrefetch<Number>::lines(blocks) * rows / kAll;
  }
  static constexpr int lines(int blocks) {
    return lines(blocks, kFirst + kRows) - lines(blocks, kFirst);
  }
  HWY_INLINE const std::byte* start(const Number* at, int blocks) const {
    return all.start(at, blocks) + all.rows * lines(blocks, kFirst) * Prefetcher::kLine;
  }
  HWY_INLINE int64_t step(int blocks) const { return all.step_of(lines(blocks)); }
};

// Values mixed by kRows rows of weights, some of which may be none, `at_once` values at a time.
// Tiles of four rows and four blocks, for g++ finds where their sums lie with few instructions.
template <int kRows, class Number>
HWY_NOINLINE void decode_pv_some(int64_t at_once, int64_t count, int64_t blocks, const float* panel,
                                 RightRowsOf<Number> values, float* out, float* totals,
                                 RowPrefetch<Number> ahead) {
  constexpr int kTile = 4;
  using std::integral_constant;
  const int64_t width16 = blocks * kLanes;
  for (int64_t n = 0; n < count; n += at_once) {
    const int64_t depth = std::min(at_once, count - n);
    const auto pv_tile = [&](int64_t j, auto some, auto first, auto sums) HWY_ATTR {
      multiply_tile<Sum::kAdded, kTile, some()>(
          depth, LeftColumns{panel + first(), kStrip}, from_block(values, j),
          out + first() * width16 + j * kLanes, width16,
          ShareOfRowsAhead<first(), kTile, kRows, Number>{ahead}, Nothing(), sums);
    };
    int64_t j = 0;
    const auto by = [&](auto some) HWY_ATTR {
      for (; blocks - j >= some(); j += some()) {
        if (j == 0)
          pv_tile(j, some, integral_constant<int, 0>(), Totals{totals});
        else
          pv_tile(j, some, integral_constant<int, 0>(), NoTotals());
        if constexpr (kRows > kTile) pv_tile(j, some, integral_constant<int, kTile>(), NoTotals());
      }
    };
    by(integral_constant<int, 4>());
    by(integral_constant<int, 2>());
    by(integral_constant<int, 1>());
    panel += at_once * kStrip;
    values.data += at_once * values.depth_step;
    ahead.read = values.data;
    ahead.first += at_once * ahead.row;
  }
}

// So many values tiles read one after the other. Few: so lines have come long before the first tile
// reads them, and most of the L1 cache is for those that come. (Eight heads of 128 columns took a
// Zen 5 0.95 of the time by 32.)
inline int64_t values_at_once(const Problem& p) {
  constexpr int64_t kBytes = 4096;
  const int64_t row = std::max<int64_t>(p.width16 * p.score.v.element_size(), 1);
  return std::clamp<int64_t>(round_down(kBytes / row, kStrip), kStrip, 8 * kStrip);
}

// Values mixed by the weights of all rows, and the sums of weights, into joined.unit. Those that
// lie as they are mixed are read there; else a few are brought into `copy` just before, the next
// ones in their place, for so it stays in the L1 cache.
inline HWY_NOINLINE void decode_pv(const DecodeUnit& unit, KeyRange seen, int64_t rows, float* copy,
                                   const GroupedQueries& grouped) {
  const Problem& p = unit.keys.problem;
  const AnyView<const float>& v = p.score.v;
  const bool whole = has_whole_rows(v);
  const int64_t blocks = p.width16 / kLanes;
  std::fill_n(grouped.unit.out, round_up(rows, kStrip) * p.width16, 0.0F);
  std::fill_n(grouped.unit.row_sum, round_up(rows, kStrip), 0.0F);
  const bool thin = rows <= kThinRows && blocks <= kThinBlocks;
  // Of rows that lie apart tiles do better that read more of them, at fewer columns.
  const bool in_steps =
      kVectors == 1 && rows > kThinRows && blocks > 0 && whole && v.row_stride == v.columns;
  const int64_t at_once = values_at_once(p);
  const auto mix = [&](KeyRange values, const auto* from, int64_t stride,
                       const auto& ahead) HWY_ATTR {
    using Number = std::remove_cvref_t<decltype(*from)>;
    for (int64_t row = 0; row < rows; row += kStrip) {
      const int64_t some = std::min(kStrip, rows - row), count = values.last - values.first;
      const float* const panel = grouped.weight_panels + row * kUnit + values.first * kStrip;
      const RightRowsOf<Number> right = {from, stride};
      float* const out = grouped.unit.out + row * p.width16;
      float* const totals = grouped.unit.row_sum + row;
      const RowPrefetch<Number> mine = row == 0 ? ahead : ahead.nothing();
      if constexpr (kVectors == 1)
        if (in_steps) {
          if (some <= kStrip / 2)
            decode_pv_some<kStrip / 2>(at_once, count, blocks, panel, right, out, totals, mine);
          else
            decode_pv_some<kStrip>(at_once, count, blocks, panel, right, out, totals, mine);
          continue;
        }
      multiply_and_total<Sum::kAdded>(some, blocks, count, panel, right, out, p.width16, totals,
                                      mine);
    }
  };
  // Rows that one tile reads are not read again; else they stay in the L1 cache until all tiles
  // have.
  const int64_t row_max = thin || (in_steps && rows <= kStrip) ? kUnit : unit.ahead;
  for (int64_t j = seen.first; j < seen.last;) {
    const Stretch stretch = stretch_of(unit, Reads::kValues, j);
    const KeyRange all = {j, std::min(j + stretch.count, seen.last)};
    with_type(v.format, stretch.at, [&](const auto* from) HWY_ATTR {
      for (int64_t count; j < all.last; j += count) {
        count = std::min(row_max, all.last - j);
        if (whole) {
          const auto* const at = from + (j - all.first) * v.row_stride;
          mix({j, j + count}, at, v.row_stride,
              rows_ahead(stretch, at, j - all.first, in_steps ? at_once : count));
        } else {
          copy_some(unit.keys, v, unit.key_head, {j, j + count}, copy);
          const float* const at = copy;
          mix({j, j + count}, at, p.width16, rows_ahead({}, at, 0, count));
        }
      }
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
