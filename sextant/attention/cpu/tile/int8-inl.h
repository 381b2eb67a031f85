// Rows of 8-bit integers with scales as rows of float32.
//
//   x[row][column] = integer[row][column] * scale        rounded once
//
// Rows are copied some at a time, into memory that stays in the L1 cache, and kernels then read
// them as those of a float32 operand, with the same bits.
#if defined(SEXTANT_ATTENTION_CPU_TILE_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_INT8_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_INT8_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_INT8_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

inline constexpr int64_t kInt8RowsAhead = 32;

struct Int8Rows {
  const int8_t* at;
  int64_t stride;
  const float* scale;
  int64_t scale_stride;  // from row to row; 0: rows have one scale
  bool by_column;        // whether columns have scales of their own
};

HWY_INLINE V load_int8(const int8_t* from) {
  const hn::Rebind<int8_t, F32> d8;
  return hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(d8, from)));
}

// Copies `count` rows, padded with zeros to columns16.
template <bool kByColumn>
HWY_NOINLINE void copy_int8_rows(Int8Rows from, int64_t count, int64_t columns, float* to) {
  const int64_t columns16 = round_up(columns, kLanes);
  for (int64_t i = 0; i < count; ++i, to += columns16) {
    // The hardware's prefetchers lose the rows while these are multiplied.
    for (int64_t c = 0; c < columns; c += Prefetcher::kLine)
      Prefetcher::prefetch_at(from.at + kInt8RowsAhead * from.stride + c);
    const V scale = hn::Set(F32(), *from.scale);
    int64_t c = 0;
    for (; c + kVectorLanes <= columns; c += kVectorLanes) {
      const V own = kByColumn ? hn::LoadU(F32(), from.scale + c) : scale;
      hn::StoreU(hn::Mul(load_int8(from.at + c), own), F32(), to + c);
    }
    for (; c < columns; ++c) to[c] = static_cast<float>(from.at[c]) * from.scale[kByColumn ? c : 0];
    std::fill(to + columns, to + columns16, 0.0F);
    from.at += from.stride;
    from.scale += from.scale_stride;
  }
}

HWY_INLINE void copy_int8_rows(const Int8Rows& from, int64_t count, int64_t columns, float* to) {
  if (from.by_column)
    copy_int8_rows<true>(from, count, columns, to);
  else
    copy_int8_rows<false>(from, count, columns, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
