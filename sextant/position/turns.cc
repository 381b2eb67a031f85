#include "sextant/position/turns.h"

#include <numbers>

#include "sextant/position/fixed_point.h"

namespace sextant {
namespace {

Uint128 integer(Turns a) { return uint128(a.high, a.low); }

Turns turns(Uint128 a) { return {static_cast<uint64_t>(a >> 64), static_cast<uint64_t>(a)}; }

// Taylor series for |x| <= pi/4: the first omitted term is below 2^-58. They avoid libm, so that
// every machine computes the same bits.
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

Turns operator*(Turns frequency, int64_t position) {
  return turns(integer(frequency) * static_cast<Uint128>(Int128{position}));
}

CosSin cos_sin(Turns angle) {
  // The nearest quarter turn, and the remainder: at most an eighth of a turn in either direction.
  const Uint128 value = integer(angle);
  const auto quarter = static_cast<unsigned>((value + (Uint128{1} << 125)) >> 126);
  const auto rest = static_cast<Int128>(value - (Uint128{quarter} << 126));
  // Near a zero the leading bits cancel, so the low word matters.
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

}  // namespace sextant
