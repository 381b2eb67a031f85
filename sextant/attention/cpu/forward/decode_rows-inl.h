// The order in which decoding reads the rows of a unit of keys and values, and the rows that it
// prefetches meanwhile.
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

// A unit of keys and values of one head. Rows count from its first.
struct DecodeUnit {
  FrameRows keys;
  int64_t key_head;
  KeyRange seen;  // that are read
  int64_t stop;   // after the last that is read before something else is
  int64_t ahead;  // rows are asked for so many rows before they are read
};

// So many rows of keys or values, and as many that are asked for meanwhile, stay in the L1 cache.
// More queries are multiplied with sixteen keys, or a few values, at a time, whose lines must all
// have come when the first is read.
inline int64_t rows_at_once(const Score<float>& s, int64_t queries) {
  const int64_t bytes = kVectors == 1 && queries > kThinRows ? 16384 : 8192;
  const int64_t each = std::max(s.k.columns * s.k.element_size(), s.v.columns * s.v.element_size());
  return std::clamp(round_down(bytes / std::max<int64_t>(each, 1), kLanes), kLanes, 4 * kLanes);
}
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

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
