#include "sextant/dense/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sextant/base/simd/targets.h"
#include "sextant/dense/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/dense/norm.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/dense/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {

// The sum of terms(n), which returns the vector of elements from n on, over whole vectors, and of
// term(n), the single element n, over the rest.
template <class Terms, class Term>
HWY_INLINE float sum_over(int64_t count, const Terms& terms, const Term& term) {
  V sums = hn::Zero(F32());
  int64_t n = 0;
  for (; n + kLanes <= count; n += kLanes) sums = hn::Add(sums, terms(n));
  float sum = hn::GetLane(hn::SumOfLanes(F32(), sums));
  for (; n < count; ++n) sum += term(n);
  return sum;
}

void normalize_rows(const Norm& norm, const float* x, const float* gain, float* y, float* mean,
                    float* inverse, int64_t first, int64_t last) {
  const F32 d;
  const int64_t width = norm.width;
  const auto count = static_cast<float>(width);
  for (int64_t row = first; row < last; ++row) {
    const float* const from = x + row * width;
    float* const to = y + row * width;
    float middle = 0;
    if (norm.centered) {
      middle = sum_over(
                   width, [&](int64_t n) HWY_ATTR { return hn::LoadU(d, from + n); },
                   [&](int64_t n) { return from[n]; }) /
               count;
      mean[row] = middle;
    }
    const V middles = hn::Set(d, middle);
    const float squares = sum_over(
        width,
        [&](int64_t n) HWY_ATTR {
          const V off = hn::Sub(hn::LoadU(d, from + n), middles);
          return hn::Mul(off, off);
        },
        [&](int64_t n) { return (from[n] - middle) * (from[n] - middle); });
    const auto by = static_cast<float>(1 / std::sqrt(double{squares / count} + norm.epsilon));
    inverse[row] = by;
    const V factor = hn::Set(d, by);
    int64_t n = 0;
    for (; n + kLanes <= width; n += kLanes) {
      const V off = hn::Mul(hn::Sub(hn::LoadU(d, from + n), middles), factor);
      hn::StoreU(hn::Mul(off, hn::LoadU(d, gain + n)), d, to + n);
    }
    for (; n < width; ++n) to[n] = (from[n] - middle) * by * gain[n];
  }
}

// Adds to d_gain. With z = (x - mean) inverse and g = d_y gain:
//   d_x = (g - mean of g - z (mean of g z)) inverse,   d_gain = sum over rows of d_y z
// If not centered, the same without the mean of g.
void differentiate_norm_rows(const Norm& norm, const Normalized& of, const float* d_y,
                             const float* base, float* d_x, float* d_gain, int64_t first,
                             int64_t last) {
  const F32 d;
  const int64_t width = norm.width;
  const auto count = static_cast<float>(width);
  for (int64_t row = first; row < last; ++row) {
    const float* const from = of.x + row * width;
    const float* const gain = of.gain;
    const float* const dy = d_y + row * width;
    const float* const plus = base ? base + row * width : nullptr;
    float* const dx = d_x + row * width;
    const float middle = norm.centered ? of.mean[row] : 0, by = of.inverse[row];
    const V middles = hn::Set(d, middle), factor = hn::Set(d, by);
    const auto z = [&](int64_t n) HWY_ATTR {
      return hn::Mul(hn::Sub(hn::LoadU(d, from + n), middles), factor);
    };
    const auto g = [&](int64_t n)
                       HWY_ATTR { return hn::Mul(hn::LoadU(d, dy + n), hn::LoadU(d, gain + n)); };
    const auto one_z = [&](int64_t n) { return (from[n] - middle) * by; };
    const auto one_g = [&](int64_t n) { return dy[n] * gain[n]; };
    const float mean_g = norm.centered ? sum_over(width, g, one_g) / count : 0;
    const float mean_gz = sum_over(
                              width, [&](int64_t n) HWY_ATTR { return hn::Mul(g(n), z(n)); },
                              [&](int64_t n) { return one_g(n) * one_z(n); }) /
                          count;
    const V means_g = hn::Set(d, mean_g), means_gz = hn::Set(d, mean_gz);
    int64_t n = 0;
    for (; n + kLanes <= width; n += kLanes) {
      const V at = z(n);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, dy + n), at, hn::LoadU(d, d_gain + n)), d, d_gain + n);
      const V rest = hn::NegMulAdd(at, means_gz, hn::Sub(g(n), means_g));
      hn::StoreU(hn::MulAdd(rest, factor, plus ? hn::LoadU(d, plus + n) : hn::Zero(d)), d, dx + n);
    }
    for (; n < width; ++n) {
      d_gain[n] += dy[n] * one_z(n);
      dx[n] = (one_g(n) - mean_g - one_z(n) * mean_gz) * by + (plus ? plus[n] : 0);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::dense {
namespace {

SEXTANT_EXPORT(normalize_rows);
SEXTANT_EXPORT(differentiate_norm_rows);

constexpr int64_t kRows = 64;  // rows per piece

}  // namespace

void normalize(const Norm& norm, const float* x, const float* gain, float* y, float* mean,
               float* inverse, const Executor& executor) {
  in_pieces(norm.rows, kRows, executor, [&](int64_t first, int64_t last) {
    SEXTANT_DISPATCH(normalize_rows)(norm, x, gain, y, mean, inverse, first, last);
  });
}

void differentiate_norm(const Norm& norm, const Normalized& of, const float* d_y, const float* base,
                        float* d_x, float* d_gain, const Executor& executor) {
  const auto width = static_cast<size_t>(norm.width);
  const auto parts = static_cast<size_t>(pieces(norm.rows, kRows));
  std::vector<float> gains(parts * width, 0);  // each piece's partial sum of d_gain
  in_pieces(norm.rows, kRows, executor, [&](int64_t first, int64_t last) {
    SEXTANT_DISPATCH(differentiate_norm_rows)
    (norm, of, d_y, base, d_x, gains.data() + first / kRows * norm.width, first, last);
  });
  std::fill_n(d_gain, width, 0.0F);
  for (size_t part = 0; part < parts; ++part)
    for (size_t n = 0; n < width; ++n) d_gain[n] += gains[part * width + n];
}

}  // namespace sextant::dense
#endif
