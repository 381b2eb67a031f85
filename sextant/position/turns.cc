#include "sextant/position/turns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numbers>

#include "sextant/position/fixed_point.h"

namespace sextant {
namespace {

Uint128 integer(Turns a) { return uint128(a.high, a.low); }

Turns turns(Uint128 a) { return {static_cast<uint64_t>(a >> 64), static_cast<uint64_t>(a)}; }

// Taylor series for |x| <= pi/4: the first term left out is below 2^-58. No libm, so that every
// machine gives the same bits.
double sin_eighth(double x) {
  const double z = x * x;
  double sum = -1.0 / 355687428096000;
  sum = sum * z + 1.0 / 1307674368000;
  sum = sum * z - 1.0 / 6227020800;
  sum = sum * z + 1.0 / 39916800;
  sum = sum * z - 1.0 / 362880;
  sum = sum * z + 1.0 / 5040;
  sum = sum * z - 1.0 / 120;
  sum = sum * z + 1.0 / 6;
  return x - x * (z * sum);
}

double cos_eighth(double x) {
  const double z = x * x;
  double sum = 1.0 / 20922789888000;
  sum = sum * z - 1.0 / 87178291200;
  sum = sum * z + 1.0 / 479001600;
  sum = sum * z - 1.0 / 3628800;
  sum = sum * z + 1.0 / 40320;
  sum = sum * z - 1.0 / 720;
  sum = sum * z + 1.0 / 24;
  return 1 - (z / 2 - z * z * sum);
}

}  // namespace

Turns operator+(Turns a, Turns b) { return turns(integer(a) + integer(b)); }

Turns operator-(Turns a, Turns b) { return turns(integer(a) - integer(b)); }

Turns operator*(Turns speed, int64_t position) {
  return turns(integer(speed) * static_cast<Uint128>(Int128{position}));
}

CosSin cos_sin(Turns angle) {
  // The nearest quarter turn, and what is left: at most an eighth of a turn either way.
  const Uint128 value = integer(angle);
  const auto quarter = static_cast<unsigned>((value + (Uint128{1} << 125)) >> 126);
  const auto rest = static_cast<Int128>(value - (Uint128{quarter} << 126));
  // Next to a zero the leading bits are gone, and the last ones count.
  const bool negative = rest < 0;
  const Turns size = turns(negative ? -static_cast<Uint128>(rest) : static_cast<Uint128>(rest));
  const double turned =
      static_cast<double>(size.high) * 0x1p-64 + static_cast<double>(size.low) * 0x1p-128;
  const double x = (negative ? -turned : turned) * (2 * std::numbers::pi);
  const double c = cos_eighth(x), s = sin_eighth(x);
  switch (quarter) {
    case 0:
      return {c, s};
    case 1:
      return {-s, c};
    case 2:
      return {-c, -s};
    default:
      return {s, -c};
  }
}

// An exact anchor at the start of each block, turned by a table of the first multiples of `step`:
//
//   cos(a + t) = cos a cos t - sin a sin t,  sin(a + t) = sin a cos t + cos a sin t
//
// in doubles, which is within 2^-50 of what cos_sin gives. A block where that leaves open how some
// value rounds (beside a zero, or beside the middle of two floats; one value in a million) is done
// again by cos_sin.
void cos_sin_run(Turns start, Turns step, int64_t count, float* cos, float* sin) {
  constexpr int64_t kLongest = 64;
  constexpr double kDoubt = 0x1p-49;
  if (step == Turns{} && count > 0) {
    const CosSin value = cos_sin(start);
    std::fill_n(cos, count, static_cast<float>(value.cos));
    std::fill_n(sin, count, static_cast<float>(value.sin));
    return;
  }

  int64_t block = 1;  // about sqrt(count): as many anchors as entries of the table
  while (block < kLongest && block * block < count) block *= 2;
  std::array<double, kLongest> table_cos, table_sin;
  table_cos[0] = 1;
  table_sin[0] = 0;
  for (int64_t n = 1; n < block; ++n) {
    const CosSin value = cos_sin(step * n);
    table_cos[static_cast<size_t>(n)] = value.cos;
    table_sin[static_cast<size_t>(n)] = value.sin;
  }
  for (int64_t first = 0; first < count; first += block, cos += block, sin += block) {
    const Turns angle = start + step * first;
    const CosSin anchor = cos_sin(angle);
    const auto length = static_cast<size_t>(std::min(block, count - first));
    uint32_t doubt = 0;
    for (size_t n = 0; n < length; ++n) {
      const double c = anchor.cos * table_cos[n] - anchor.sin * table_sin[n];
      const double s = anchor.sin * table_cos[n] + anchor.cos * table_sin[n];
      const auto c_low = static_cast<float>(c - kDoubt), s_low = static_cast<float>(s - kDoubt);
      const auto c_high = static_cast<float>(c + kDoubt), s_high = static_cast<float>(s + kDoubt);
      doubt |= std::bit_cast<uint32_t>(c_low) ^ std::bit_cast<uint32_t>(c_high);
      doubt |= std::bit_cast<uint32_t>(s_low) ^ std::bit_cast<uint32_t>(s_high);
      cos[n] = c_low;
      sin[n] = s_low;
    }
    if (doubt == 0) continue;
    for (size_t n = 0; n < length; ++n) {
      const CosSin value = cos_sin(angle + step * static_cast<int64_t>(n));
      cos[n] = static_cast<float>(value.cos);
      sin[n] = static_cast<float>(value.sin);
    }
  }
}

}  // namespace sextant
