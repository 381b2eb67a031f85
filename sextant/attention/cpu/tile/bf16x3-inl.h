// Rows of values split into bfloat16 terms and paired (sextant/base/simd/bfloat16-inl.h), as AMX
// multiplies them: a pair is two values sixteen columns or keys apart, so that neighbours stay
// neighbours; of 32 columns, pair i is columns i and 16 + i.
#if defined(SEXTANT_ATTENTION_CPU_TILE_BF16X3_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_BF16X3_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_BF16X3_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_BF16X3_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/pairs-inl.h"
#include "sextant/base/simd/amx.h"
#include "sextant/position/frame.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

using sextant::HWY_NAMESPACE::Fit;
using sextant::HWY_NAMESPACE::Greatest;
using sextant::HWY_NAMESPACE::put_pairs;
using sextant::HWY_NAMESPACE::split;
using sextant::HWY_NAMESPACE::TermsOf;

// The same for weights, which have no sign.
template <int kCount>
HWY_INLINE TermsOf<kCount> split_weight(V x) {
  if constexpr (kCount == 1)
    return {{round_weight(x)}};
  else
    return split<kCount>(x);
}

template <int kCount>
HWY_INLINE TermsOf<kCount> no_terms() {
  TermsOf<kCount> terms;
  for (Bits<F32>& part : terms.part) part = hn::Zero(hn::RebindToUnsigned<F32>());
  return terms;
}

// Pairs rows of `lanes` values, a multiple of kLanes, each with the row sixteen further on; rows
// beyond the last are 0. line(i): the address of row i. to: rows of pairs, `to_step` apart.
template <int kCount, class Line>
HWY_INLINE Fit pair_lines(int64_t lines, int64_t lanes, float* to, int64_t to_step,
                          int64_t term_step, Line line) {
  Fit fit;
  for (int64_t first = 0; first < lines; first += amx::kDepth)
    for (int64_t i = first; i < first + kLanes; ++i, to += to_step)
      for (int64_t c = 0; c < lanes; c += kVectorLanes) {
        const V x = i < lines ? load_part(line(i) + c) : hn::Zero(F32());
        const V y = i + kLanes < lines ? load_part(line(i + kLanes) + c) : hn::Zero(F32());
        fit.look(x);
        fit.look(y);
        put_pairs(split<kCount>(x), split<kCount>(y), to + c, term_step);
      }
  return fit;
}

// Pairs the columns of rows of `columns16` values. to: rows of amx::paired(columns16).
template <int kCount>
HWY_INLINE Fit pair_columns(const float* from, int64_t from_row, int64_t rows, int64_t columns16,
                            float* to, int64_t term_step) {
  Fit fit;
  const int64_t to_row = amx::paired(columns16);
  for (int64_t i = 0; i < rows; ++i, from += from_row, to += to_row)
    for (int64_t c = 0; c < columns16; c += amx::kDepth)
      for (int64_t p = 0; p < kLanes; p += kVectorLanes) {
        const V x = load_part(from + c + p);
        const V y = c + kLanes < columns16 ? load_part(from + c + kLanes + p) : hn::Zero(F32());
        fit.look(x);
        fit.look(y);
        put_pairs(split<kCount>(x), split<kCount>(y), to + c / 2 + p, term_step);
      }
  return fit;
}

// Pairs the columns of a panel of sixteen rows, [columns16][kLanes], into
// [amx::paired(columns16)][kLanes].
template <int kCount>
HWY_INLINE Fit pair_panel_columns(const float* panel, int64_t columns16, float* to,
                                  int64_t term_step) {
  return pair_lines<kCount>(columns16, kLanes, to, kLanes, term_step,
                            [&](int64_t c) HWY_ATTR { return panel + c * kLanes; });
}

// Splits and pairs the weights of `columns` of a row, with zeros for the other columns of `all`:
// to[all / 2].
template <int kCount>
HWY_INLINE void pair_line(const float* line, KeyRange columns, KeyRange all, float* to,
                          int64_t term_step) {
  const auto terms_at = [&](int64_t j, int p) HWY_ATTR {
    return split_weight<kCount>(load_part(line + j + p * kVectorLanes));
  };
  const auto terms_if_any = [&](int64_t j, int p) HWY_ATTR {
    return j >= columns.first && j < columns.last ? terms_at(j, p) : no_terms<kCount>();
  };
  for (int64_t j = all.first; j < all.last; j += amx::kDepth)
    for (int p = 0; p < kVectors; ++p) {
      float* const at = to + j / 2 + p * kVectorLanes;
      if (HWY_LIKELY(j >= columns.first && j + amx::kDepth <= columns.last)) {
        const TermsOf<kCount> x = terms_at(j, p);
        put_pairs(x, terms_at(j + kLanes, p), at, term_step);
      } else {
        const TermsOf<kCount> x = terms_if_any(j, p);
        put_pairs(x, terms_if_any(j + kLanes, p), at, term_step);
      }
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
