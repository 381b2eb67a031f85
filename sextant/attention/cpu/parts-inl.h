// Numbers in parts, which are bfloat16, as AMX multiplies them (amx.h): one part, the number rounded; or three whose
// sum is the number,
//
//   x = a + b + c      a: x rounded to 8 bits      b: what is left, cut off after 8 bits      c: what is left then
//
// exactly, if 2^-100 <= |x| or x is 0; smaller ones, of which AMX would take parts for zeros, and what is rounded to
// infinity do not `fit`, and go through vectors instead. Two numbers sixteen columns or keys apart are a pair, so that
// neighbours stay neighbours: of 32 columns, pair i is columns i and 16 + i.
#if defined(SEXTANT_ATTENTION_CPU_PARTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_PARTS_INL_H_
#undef SEXTANT_ATTENTION_CPU_PARTS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_PARTS_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/lanes-inl.h"
#include "sextant/attention/cpu/pairs-inl.h"
#include "sextant/position/frame.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Each as float32 has it, its lower 16 bits zeros.
template <int kCount>
struct PartsOf {
  Bits<F32> part[kCount];
};

template <int kCount>
HWY_INLINE PartsOf<kCount> split(V x) {
  const hn::RebindToUnsigned<F32> d;
  PartsOf<kCount> parts;
  if constexpr (kCount == 1) {
    parts.part[0] = round(x);
  } else {
    const F32 f;
    parts.part[0] = only_upper(hn::Add(hn::BitCast(d, x), hn::Set(d, 0x8000)));
    const V left = hn::Sub(x, hn::BitCast(f, parts.part[0]));
    parts.part[1] = only_upper(hn::BitCast(d, left));
    // Of numbers below 2^-110 it has more than 8 bits, which must not get into the other half of a pair.
    parts.part[2] = only_upper(hn::BitCast(d, hn::Sub(left, hn::BitCast(f, parts.part[1]))));
  }
  return parts;
}

// As that for weights, which have no sign.
template <int kCount>
HWY_INLINE PartsOf<kCount> split_weight(V x) {
  if constexpr (kCount == 1)
    return {{round_weight(x)}};
  else
    return split<kCount>(x);
}

template <int kCount>
HWY_INLINE PartsOf<kCount> no_parts() {
  PartsOf<kCount> parts;
  for (Bits<F32>& part : parts.part) part = hn::Zero(hn::RebindToUnsigned<F32>());
  return parts;
}

// The greatest of some numbers, to tell whether parts will do.
class Greatest {
 public:
  HWY_INLINE Greatest() : most_(hn::Zero(I32())) {}
  HWY_INLINE hn::Vec<I32> look(V x) {
    const auto size = hn::And(hn::BitCast(I32(), x), hn::Set(I32(), 0x7fffffff));
    most_ = hn::Max(most_, size);
    return size;
  }
  // None is infinite or NaN, or would be rounded to infinity.
  HWY_INLINE bool finite() const {
    return hn::AllTrue(I32(), hn::Lt(most_, hn::Set(I32(), kMost)));
  }
  // It has exact parts, or all are 0; what smaller ones lose is at most 2^-26 of it.
  HWY_INLINE bool fits() const {
    const I32 d;
    const auto any = hn::MaxOfLanes(d, most_);
    return finite() &&
           hn::AllTrue(d, hn::Or(hn::Eq(any, hn::Zero(d)), hn::Gt(any, hn::Set(d, kLeast - 1))));
  }

 protected:
  static constexpr int32_t kMost = 0x7f7f8000;          // the least that is rounded to infinity
  static constexpr int32_t kLeast = (127 - 100) << 23;  // 2^-100

 private:
  hn::Vec<I32> most_;
};

// The least, too, of those that are not 0.
class Fit : private Greatest {
 public:
  HWY_INLINE Fit() : least_(hn::Set(I32(), kMost)) {}
  HWY_INLINE void look(V x) {
    const I32 d;
    const auto size = Greatest::look(x);
    const auto none = hn::Eq(size, hn::Zero(d));
    least_ = hn::Min(least_, hn::IfThenElse(none, hn::Set(d, kMost), size));
  }
  // Whether all have exact parts.
  HWY_INLINE bool all() const {
    return finite() && hn::AllTrue(I32(), hn::Gt(least_, hn::Set(I32(), kLeast - 1)));
  }

 private:
  hn::Vec<I32> least_;
};

// Puts pairs of x and y, part by part.
template <int kCount>
HWY_INLINE void put_pairs(const PartsOf<kCount>& x, const PartsOf<kCount>& y, float* to,
                          int64_t part_step) {
  for (int n = 0; n < kCount; ++n)
    hn::StoreU(join(x.part[n], y.part[n]), F32(), to + n * part_step);
}

// Lines of `lanes` numbers, a multiple of kLanes, each paired with that sixteen lines on; those beyond the last are 0.
// line(i): where line i lies. to: lines of pairs, `to_step` apart.
template <int kCount, class Line>
HWY_INLINE Fit pair_lines(int64_t lines, int64_t lanes, float* to, int64_t to_step,
                          int64_t part_step, Line line) {
  Fit fit;
  for (int64_t first = 0; first < lines; first += kAmxDepth)
    for (int64_t i = first; i < first + kLanes; ++i, to += to_step)
      for (int64_t c = 0; c < lanes; c += kPart) {
        const V x = i < lines ? load_part(line(i) + c) : hn::Zero(F32());
        const V y = i + kLanes < lines ? load_part(line(i + kLanes) + c) : hn::Zero(F32());
        fit.look(x);
        fit.look(y);
        put_pairs(split<kCount>(x), split<kCount>(y), to + c, part_step);
      }
  return fit;
}

// Rows of `columns16` numbers, whose columns are paired. to: rows of paired(columns16).
template <int kCount>
HWY_INLINE Fit pair_columns(const float* from, int64_t from_row, int64_t rows, int64_t columns16,
                            float* to, int64_t part_step) {
  Fit fit;
  const int64_t to_row = paired(columns16);
  for (int64_t i = 0; i < rows; ++i, from += from_row, to += to_row)
    for (int64_t c = 0; c < columns16; c += kAmxDepth)
      for (int64_t p = 0; p < kLanes; p += kPart) {
        const V x = load_part(from + c + p);
        const V y = c + kLanes < columns16 ? load_part(from + c + kLanes + p) : hn::Zero(F32());
        fit.look(x);
        fit.look(y);
        put_pairs(split<kCount>(x), split<kCount>(y), to + c / 2 + p, part_step);
      }
  return fit;
}

// A panel of sixteen rows, [columns16][kLanes], into pairs of columns, [paired(columns16)][kLanes].
template <int kCount>
HWY_INLINE Fit pair_panel_columns(const float* panel, int64_t columns16, float* to,
                                  int64_t part_step) {
  return pair_lines<kCount>(columns16, kLanes, to, kLanes, part_step,
                            [&](int64_t c) HWY_ATTR { return panel + c * kLanes; });
}

// The numbers of `columns` of a line, and zeros for the others of `all`, in pairs and parts: to[all / 2]. see(x): is
// shown every vector.
template <int kCount, class See>
HWY_INLINE void pair_line(const float* line, Run columns, Run all, float* to, int64_t part_step,
                          See see) {
  const auto parts_at = [&](int64_t j, int p) HWY_ATTR {
    const V x = load_part(line + j + p * kPart);
    see(x);
    return split_weight<kCount>(x);
  };
  const auto parts_if_any = [&](int64_t j, int p) HWY_ATTR {
    return j >= columns.first && j < columns.last ? parts_at(j, p) : no_parts<kCount>();
  };
  for (int64_t j = all.first; j < all.last; j += kAmxDepth)
    for (int p = 0; p < kParts; ++p) {
      float* const at = to + j / 2 + p * kPart;
      if (HWY_LIKELY(j >= columns.first && j + kAmxDepth <= columns.last)) {
        const PartsOf<kCount> x = parts_at(j, p);
        put_pairs(x, parts_at(j + kLanes, p), at, part_step);
      } else {
        const PartsOf<kCount> x = parts_if_any(j, p);
        put_pairs(x, parts_if_any(j + kLanes, p), at, part_step);
      }
    }
}

template <int kCount>
HWY_INLINE void pair_line(const float* line, Run columns, Run all, float* to, int64_t part_step) {
  pair_line<kCount>(line, columns, all, to, part_step, [](V) HWY_ATTR {});
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
