// Applies the Epilogue to sums and writes them, one row of a panel's columns at a time.
#if defined(SEXTANT_DENSE_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_DENSE_EPILOGUE_INL_H_
#undef SEXTANT_DENSE_EPILOGUE_INL_H_
#else
#define SEXTANT_DENSE_EPILOGUE_INL_H_
#endif

#include <algorithm>

#include "sextant/dense/slab.h"
#include "sextant/dense/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {

inline constexpr int kTileVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
inline constexpr int64_t kPanel = kTileVectors * kLanes;

// max(x, 0). NaN stays NaN; x86's maximum instruction would give 0.
HWY_INLINE V relu(V x) { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(F32())), x); }

// Writes one row of a tile.
HWY_INLINE void write_row(const V (&sum)[kTileVectors], const Epilogue& finish, float* to) {
  const F32 d;
  for (int v = 0; v < kTileVectors; ++v) {
    const int64_t at = v * kLanes;
    V x = sum[v];
    if (finish.base) x = hn::Add(x, hn::LoadU(d, finish.base + at));
    if (finish.slope_at) {
      const V positive = relu(hn::LoadU(d, finish.slope_at + at));
      x = hn::Mul(hn::Add(positive, positive), x);
    }
    hn::StoreU(x, d, to + at);
    if (finish.squared_relu) hn::StoreU(hn::Mul(relu(x), relu(x)), d, finish.squared_relu + at);
  }
}

// Writes a row of `columns` < kPanel sums from memory.
inline HWY_NOINLINE void write_part_of_row(const float* sums, int64_t columns,
                                           const Epilogue& finish, float* to) {
  float base[kPanel] = {}, slope_at[kPanel] = {}, c[kPanel], squared_relu[kPanel];
  const auto copied = [&](const float* from, float* to_whole) {
    if (from == nullptr) return from;
    std::copy_n(from, columns, to_whole);
    return static_cast<const float*>(to_whole);
  };
  const Epilogue whole = {.base = copied(finish.base, base),
                          .slope_at = copied(finish.slope_at, slope_at),
                          .squared_relu = finish.squared_relu ? squared_relu : nullptr};
  V sum[kTileVectors];
  for (int v = 0; v < kTileVectors; ++v) sum[v] = hn::LoadU(F32(), sums + v * kLanes);
  write_row(sum, whole, c);
  std::copy_n(c, columns, to);
  if (finish.squared_relu) std::copy_n(squared_relu, columns, finish.squared_relu);
}

// Writes rows of sums from memory, [rows][kPanel].
inline void write_rows(const float* sums, int64_t rows, int64_t columns, const Slab& to) {
  for (int64_t r = 0; r < rows; ++r, sums += kPanel) {
    const Epilogue finish = moved(to.finish, r * to.stride);
    float* const at = to.c + r * to.stride;
    if (columns < kPanel) {
      write_part_of_row(sums, columns, finish, at);
      continue;
    }
    V sum[kTileVectors];
    for (int v = 0; v < kTileVectors; ++v) sum[v] = hn::LoadU(F32(), sums + v * kLanes);
    write_row(sum, finish, at);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::dense
HWY_AFTER_NAMESPACE();

#endif
