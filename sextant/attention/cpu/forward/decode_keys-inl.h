// The keys of a unit in the order in which decoding multiplies them: in place, or, where they are
// integers, copied as float32.
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_DECODE_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_KEYS_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_KEYS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_DECODE_KEYS_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "sextant/attention/cpu/forward/decode_rows-inl.h"
#include "sextant/attention/cpu/tile/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Prefetches the rows that a stretch reads soon, in address order, one line among the steps of the
// arithmetic for each line that is read. In bursts of four or eight, decoding took 5 to 10 % longer
// on a Zen 5. Hardware prefetchers do not follow rows that are read side by side.
class ColumnPrefetch {
 public:
  ColumnPrefetch() = default;  // prefetches nothing of use
  explicit ColumnPrefetch(const Stretch& rows) {
    if (rows.next_view) lines_ = {rows.next_data, *rows.next_view, rows.next_count};
  }
  // Prefetches `count` floats, which the L1 cache has: nothing of use, in the fewest steps.
  ColumnPrefetch(const float* near, int64_t count)
      : lines_(near, count * int64_t{sizeof(float)}, count * int64_t{sizeof(float)}, 1) {}
  // Prefetches kCount lines.
  template <int64_t kCount>
  HWY_INLINE void prefetch() {
    for (int64_t n = 0; n < kCount; ++n) lines_.prefetch();
  }

 private:
  Prefetcher lines_;
};

// Row-major keys in place.
template <class Number>  // float, Bfloat16 or Float16
struct KeyRows {
  const Number* data;
  int64_t row_step;
};

// Keys that are multiplied one after the other, and what is prefetched meanwhile.
template <class Number>
struct KeyStretch {
  KeyRows<Number> keys;
  int64_t count;
  ColumnPrefetch ahead;
};

// Copies the unit's keys `range`, which are integers, as float32.
inline HWY_NOINLINE void copy_int8_keys(const DecodeUnit& unit, KeyRange range, float* copy) {
  copy_some(unit.keys, unit.keys.problem.score.k, unit.key_head, range, copy);
}

// The stretch at the begin of the unit's keys `range`: in place; or, where they are integers, in
// `copy`, which has room for DecodeUnit::ahead keys, so many stay in the L1 cache. A null copy says
// that they are not. Integers take the code of float32, for one of their own would be as large.
template <class Number>
HWY_INLINE KeyStretch<Number> key_stretch(const DecodeUnit& unit, KeyRange range, float* copy) {
  if constexpr (std::is_same_v<Number, float>)
    if (copy) {
      const int64_t count = std::min(unit.ahead, range.last - range.first);
      const int64_t stride = unit.keys.problem.depth16;
      copy_int8_keys(unit, {range.first, range.first + count}, copy);
      return {{copy, stride}, count, {copy, count * stride}};
    }
  const Stretch rows = stretch_of(unit, Reads::kKeys, range.first);
  return {{static_cast<const Number*>(rows.at), unit.keys.problem.score.k.row_stride},
          std::min(rows.count, range.last - range.first),
          ColumnPrefetch(rows)};
}

// Calls multiply(the type of numbers, some, copy) for each run of the unit's keys `range` of one
// kind. copy: that of key_stretch().
template <class F>
HWY_INLINE void each_key_kind(const DecodeUnit& unit, KeyRange range, float* copy, F&& multiply) {
  each_kind(unit, range, [&](KeyRange some, bool int8) HWY_ATTR {
    with_type(int8 ? DType::kFloat32 : unit.keys.problem.score.k.dtype, nullptr,
              [&](const auto* none) HWY_ATTR { multiply(none, some, int8 ? copy : nullptr); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
