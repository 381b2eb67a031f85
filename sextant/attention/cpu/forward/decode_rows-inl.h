// The order in which decoding reads the rows of a unit of keys and values, and the rows that it
// prefetches while it does.
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_DECODE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_ROWS_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_ROWS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_DECODE_ROWS_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// A unit of keys and values of one head. Rows are counted from its first.
struct DecodeUnit {
  FrameRows keys;
  int64_t key_head;
  KeyRange seen;  // rows that are read
  int64_t stop;   // end of the rows that are read in later units, too
  int64_t ahead;  // prefetch distance in rows
};

// The number of rows of keys or values that stay in the L1 cache beside as many that are
// prefetched. It is larger for more queries: these are multiplied with sixteen keys, or a few
// values, at a time, whose lines must all have arrived when the first is read.
inline int64_t rows_at_once(const HostScore<float>& s, int64_t queries) {
  const int64_t bytes = kVectors == 1 && queries > kThinRows ? 16384 : 8192;
  const int64_t each = std::max(s.k.columns * s.k.element_size(), s.v.columns * s.v.element_size());
  return std::clamp(round_down(bytes / std::max<int64_t>(each, 1), kLanes), kLanes, 4 * kLanes);
}

enum class Reads { kKeys, kValues };

// Contiguous rows of a unit, and the contiguous rows to prefetch while they are read.
struct Stretch {
  int64_t count;
  const void* at;                                       // null: they are integers
  const HostAnyView<const float>* next_view = nullptr;  // null: no prefetch
  const void* next_data = nullptr;
  int64_t next_count = 0;
};

// Calls f(rows, whether they are integers) for each run of the unit's rows `range` of one kind.
template <class F>
HWY_INLINE void each_kind(const DecodeUnit& unit, KeyRange range, F&& f) {
  for (int64_t j = range.first, last = j; j < range.last; j = last) {
    const bool int8 = unit.keys.is_int8(j);
    do {
      last =
          std::min(unit.keys.problem.score.k.numbers ? last + unit.keys.in_page(last) : range.last,
                   range.last);
    } while (last < range.last && unit.keys.is_int8(last) == int8);
    f(KeyRange{j, last}, int8);
  }
}

// The stretch from the unit's row `first` on. Values are read after keys, and the next unit's keys
// after values.
inline Stretch stretch_of(const DecodeUnit& unit, Reads reads, int64_t first) {
  const HostScore<float>& s = unit.keys.problem.score;
  const bool keys = reads == Reads::kKeys;
  const HostRows<float>* view = keys ? &s.k : &s.v;
  const int64_t last = round_up(unit.seen.last, kLanes);
  int64_t next = first + unit.ahead;
  Stretch to = {std::min(unit.keys.in_page(first), last - first),
                unit.keys.is_int8(first) ? nullptr : unit.keys.at(*view, unit.key_head, first)};
  if (next < last) {
    to.count = std::min(to.count, last - next);
  } else {
    view = keys ? &s.v : &s.k;
    if (keys) next += unit.seen.first - last;
  }
  const int64_t left = std::min(unit.stop - next, unit.keys.in_page(next));
  if (left <= 0 || view->column_stride != 1 || unit.keys.is_int8(next)) return to;
  to.count = std::min(to.count, round_up(left, kLanes));
  to.next_view = view;
  to.next_data = unit.keys.at(*view, unit.key_head, next);
  to.next_count = std::min(to.count, left);
  return to;
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
