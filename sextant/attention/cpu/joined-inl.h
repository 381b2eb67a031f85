// Few queries against one unit of keys, for all heads of a group at once: bound by memory.
//
// Keys are multiplied sixteen at a time, and values thirty-two, while what comes next is on its way. Each
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

// Rows of one head that will be wanted soon, asked for in order, few at once between stretches of
// arithmetic: so the processor sees one stream, which it then follows by itself, always waits for some, and
// asking costs the arithmetic little. (Asking at each step of a sum makes mixing a quarter slower.)
class Ahead {
 public:
  // `rows` rows of x from `first` on, in `calls` calls; null: none. Those beyond the last row of memory do
  // no harm.
  Ahead(const AnyView<const float>& x, const void* first, int64_t rows, int64_t calls)
      : at_(static_cast<const std::byte*>(first)),
        row_bytes_(x.columns * x.element_size()),
        row_step_(x.row_stride * x.element_size()),
        left_(x.column_stride == 1 && first ? rows : 0),
        share_((left_ + calls - 1) / std::max<int64_t>(calls, 1)) {}
  HWY_INLINE void operator()() {
    constexpr int64_t kLine = 64;
    const int64_t rows = std::min(share_, left_);
    left_ -= rows;
    for (int64_t n = 0; n < rows; ++n) {
#if HWY_COMPILER_GCC_ACTUAL  // counting lines takes as long as asking for them; Clang unrolls by itself
#pragma GCC unroll 4
#endif
      for (int64_t byte = 0; byte < row_bytes_; byte += kLine) hwy::Prefetch(at_ + byte);
      at_ += row_step_;
    }
  }

 private:
  const std::byte* at_;
  int64_t row_bytes_, row_step_, left_, share_;
};

inline constexpr int64_t kKeysAtOnce = 8;
inline constexpr int64_t kColumnsAtOnce = 8;
inline constexpr int64_t kValuesAtOnce = 2 * kLanes;
// One step of values, and two of keys, ahead of their use.
inline constexpr int64_t kJoinedRowsAhead = kValuesAtOnce;

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
// the lanes of AVX-512's vectors, eight columns at a time, which fill them where queries are few. Sums have the
// order of multiply().
template <int kRows>
HWY_NOINLINE void multiply_columns_of_keys(int64_t depth, Left keys, const float* queries,
                                           float* to, Ahead ahead) {
  const F32 d;
  V sum[kRows];
  for (int i = 0; i < kRows; ++i) sum[i] = hn::Zero(d);
  for (int64_t c = 0; c < depth; c += kColumnsAtOnce) {
    if (c % kLanes == 0) ahead();
    V column[kColumnsAtOnce];
    sextant::HWY_NAMESPACE::load_eight_columns(d, keys.data + c, keys.row_step, column);
#if HWY_COMPILER_GCC_ACTUAL  // which else keeps columns in memory
#pragma GCC unroll 8
#endif
    for (int64_t n = 0; n < kColumnsAtOnce; ++n)
      for (int i = 0; i < kRows; ++i)
        sum[i] = hn::MulAdd(column[n], hn::Set(d, queries[(c + n) * kLanes + i]), sum[i]);
  }
  for (int i = 0; i < kRows; ++i) hn::StoreU(sum[i], d, to + i * kScoreRow);
}

// <q, k> of all rows with `columns` of the unit's keys, none of which is turned. wide: room for sixteen
// of them in float32.
inline HWY_NOINLINE void multiply_plain_keys(const FrameRows& unit, int64_t key_head, Run columns,
                                             int64_t rows, size_t way, float* wide,
                                             const Joined& joined) {
  const Problem& p = unit.problem;
  const AnyView<const float>& k = p.score.k;
  HWY_ALIGN float square[kLanes * kLanes] = {};
  for (int64_t j = columns.first; j < columns.last; j += kLanes) {
    const int64_t count = std::min(kLanes, unit.rows - j);
    Left keys = {wide, p.depth16, 1};
    if (k.format == Format::kWide)
      keys = {static_cast<const float*>(unit.at(k, key_head, j)), k.row_stride, k.column_stride};
    else
      copy_some(unit, k, key_head, {j, j + count}, wide);
    for (int64_t row = 0; row < rows; row += kLanes) {
      const int64_t some = std::min(kLanes, rows - row);
      const float* queries = joined.queries[way] + row * p.depth16;
      float* const to = joined.products[way] + row * kScoreRow + j;
      const bool by_columns = kParts == 1 && some <= kStrip && count == kLanes &&
                              keys.depth_step == 1 && p.depth % kColumnsAtOnce == 0;
      const Ahead ahead(k, unit.soon(k, key_head, j + kJoinedRowsAhead), row == 0 ? kLanes : 0,
                        (by_columns ? 1 : kLanes / kKeysAtOnce) * (p.depth16 / kLanes));
      if constexpr (kParts == 1)
        if (by_columns) {
          if (some <= kStrip / 2)
            multiply_columns_of_keys<kStrip / 2>(p.depth, keys, queries, to, ahead);
          else
            multiply_columns_of_keys<kStrip>(p.depth, keys, queries, to, ahead);
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
inline HWY_NOINLINE void multiply_packed_keys(const FrameRows& unit, int64_t key_head, Run columns,
                                              int64_t rows, size_t way, const Panels& keys,
                                              const Joined& joined) {
  const Problem& p = unit.problem;
  // As many blocks as a thin product wants; their panels stay in a near cache.
  constexpr int64_t kPiece = 4 * kLanes;
  const int64_t panel = kLanes * p.depth16;
  for (int64_t j = columns.first; j < columns.last; j += kPiece) {
    const Run piece = {j, std::min({j + kPiece, columns.last, unit.rows})};
    pack_rows({p, unit.block, Side::kKey, unit.first + piece.first, piece.last - piece.first},
              p.score.k, key_head, 1, keys, {way, false});
    const int64_t blocks = round_up(piece.last - piece.first, kLanes) / kLanes;
    for (int64_t row = 0; row < rows; row += kLanes)
      multiply<Sum::kNew>(std::min(kLanes, rows - row), blocks, p.depth,
                          {joined.queries[way] + row * p.depth16, 1, kLanes},
                          {keys.turned[way], kLanes, panel},
                          joined.products[way] + row * kScoreRow + j, kScoreRow);
  }
}

// Products with the keys in every way. seen: which ways see them.
inline void multiply_joined(const FrameRows& unit, int64_t key_head, Run columns, int64_t rows,
                            WaysSeen seen, const Panels& keys, const Joined& joined) {
  for (size_t way = 0; way < unit.problem.ways.list.size(); ++way) {
    if (!seen.has(way)) continue;
    // For one or two rows, packing and whole blocks are faster than half empty lanes.
    if (unit.problem.ways.list[way].key.rotation || rows <= kThinRows)
      multiply_packed_keys(unit, key_head, columns, rows, way, keys, joined);
    else
      multiply_plain_keys(unit, key_head, columns, rows, way, keys.turned[way], joined);
  }
}

// Values mixed by the weights of all rows, and the sums of weights, into joined.unit. What lies in memory
// as it is mixed is read there; else a few rows are brought into `copy` just before they are mixed, the
// next ones in their place, for so it stays in the L1 cache.
inline HWY_NOINLINE void mix_joined(const FrameRows& unit, int64_t key_head, Run seen, int64_t rows,
                                    float* copy, const Joined& joined) {
  const Problem& p = unit.problem;
  const AnyView<const float>& v = p.score.v;
  const bool narrow = v.format != Format::kWide;
  const Matrix values = narrow ? Matrix{copy, p.width16} : whole_rows(unit, v, key_head, copy);
  const int64_t blocks = p.width16 / kLanes;
  const int64_t tiles = round_up(rows * blocks, kUsualTile) / kUsualTile;
  std::fill_n(joined.unit.out, rows * p.width16, 0.0F);
  std::fill_n(joined.unit.sum, round_up(rows, kStrip), 0.0F);
  // Tiles load and store what they add to, which wants many values; those of all tiles stay near.
  for (int64_t j = seen.first; j < seen.last; j += kValuesAtOnce) {
    const int64_t count = std::min(kValuesAtOnce, seen.last - j);
    // Of one or two rows, whole rows of values are multiplied at once: a stream already.
    Ahead ahead(v, rows > kThinRows ? unit.soon(v, key_head, j + kJoinedRowsAhead) : nullptr,
                kValuesAtOnce, kValuesAtOnce / kStepsBetween * tiles);
    if (narrow) copy_some(unit, v, key_head, {j, j + count}, copy);
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
