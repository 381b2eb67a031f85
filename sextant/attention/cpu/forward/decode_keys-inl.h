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

// Calls multiply(j, keys, ahead) for each kLanes of the unit's keys `range`, in place.
template <class Stored>
struct KeysInPlace {
  using Number = Stored;

  template <class F>
  HWY_INLINE void each_sixteen(const DecodeUnit& unit, KeyRange range, F&& multiply) const {
    const HostAnyView<const float>& k = unit.keys.problem.score.k;
    for (int64_t j = range.first; j < range.last;) {
      const Stretch stretch = stretch_of(unit, Reads::kKeys, j);
      KeyRows<Number> keys = {static_cast<const Number*>(stretch.at), k.row_stride};
      ColumnPrefetch ahead(stretch);
      const int64_t stop = std::min(j + stretch.count, range.last);
      for (; j < stop; j += kLanes, keys.data += kLanes * keys.row_step) multiply(j, keys, ahead);
    }
  }
};

// The same for integers. They are copied as float32, as many at a time as stay in the L1 cache.
struct KeysOfInt8 {
  using Number = float;
  float* copy;  // room for DecodeUnit::ahead keys

  template <class F>
  HWY_INLINE void each_sixteen(const DecodeUnit& unit, KeyRange range, F&& multiply) const {
    each<1>(unit, range,
            [&](int64_t j, KeyRows<float> keys, auto, ColumnPrefetch& nothing)
                HWY_ATTR { multiply(j, keys, nothing); });
  }
  // Calls multiply(j, keys, squares, nothing) for kMost * kLanes keys or, at the end, fewer.
  template <int kMost, class F>
  HWY_INLINE void each(const DecodeUnit& unit, KeyRange range, F&& multiply) const {
    const int64_t stride = unit.keys.problem.depth16;
    ColumnPrefetch nothing;
    for (int64_t j = range.first, last; j < range.last; j = last) {
      last = std::min(j + unit.ahead, range.last);
      copy_some(unit.keys, unit.keys.problem.score.k, unit.key_head, {j, last}, copy);
      int64_t n = j;
      const auto rows = [&]() -> KeyRows<float> { return {copy + (n - j) * stride, stride}; };
      for (; n + kMost * kLanes <= last; n += kMost * kLanes)
        multiply(n, rows(), std::integral_constant<int, kMost>(), nothing);
      for (; n < last; n += kLanes) multiply(n, rows(), std::integral_constant<int, 1>(), nothing);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
