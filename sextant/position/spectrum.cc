#include "sextant/position/spectrum.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/position/fixed_point.h"

namespace sextant {
namespace {

void check(const RotaryOptions& options) {
  if (options.dim < 0 || options.dim % 2 != 0) {
    fail("rotary: dim: expected an even number of at least 0, but got " +
         std::to_string(options.dim));
  }
  if (!(options.base > 0 && std::isfinite(options.base))) {
    fail("rotary: base: expected a finite number above 0, but got " + std::to_string(options.base));
  }
  constexpr int64_t kMost = std::numeric_limits<int>::max() / 2;
  if (options.first_column < 0 || options.first_column > kMost || options.dim > kMost) {
    fail("rotary: first_column: expected columns from 0 to " + std::to_string(2 * kMost) +
         ", but got " + std::to_string(options.dim) + " from column " +
         std::to_string(options.first_column));
  }
}

// The float nearest to x; static_cast<float>(x.high) alone would round twice.
double float_nearest(Real x) {
  const auto nearest = static_cast<float>(x.high);
  const double rest = (x.high - nearest) + x.low;
  const float neighbour = std::nextafter(nearest, rest > 0 ? HUGE_VALF : -HUGE_VALF);
  const double neighbour_rest = (x.high - neighbour) + x.low;
  return std::fabs(neighbour_rest) < std::fabs(rest) ? neighbour : nearest;
}

// x / (2 pi) modulo 1, in units of 2^-128, for 0 <= x < 2^64.
Uint128 fraction_of_turn(double x) {
  // 1 / (2 pi) in units of 2^-256, the lowest word first.
  constexpr std::array<uint64_t, 4> kTurnsPerRadian{0x7f9458eaf7aef158, 0x36d8a5664f10e410,
                                                    0x7f09d5f47d4d3770, 0x28be60db9391054a};
  int exponent = 0;
  const auto mantissa = static_cast<uint64_t>(std::ldexp(std::frexp(x, &exponent), 53));
  std::array<uint64_t, 7> product{};  // the last two words stay 0: room to read past the end
  Uint128 carry = 0;
  for (size_t i = 0; i < kTurnsPerRadian.size(); ++i) {
    carry += Uint128{mantissa} * kTurnsPerRadian[i];
    product[i] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
  product[4] = static_cast<uint64_t>(carry);

  // The quotient is product * 2^(exponent - 53 - 256); the result is its 128 bits from 2^-128
  // upwards.
  const int first = 128 - (exponent - 53);
  if (first >= 320) return 0;
  const auto word = static_cast<size_t>(first / 64);
  const int bit = first % 64;
  const Uint128 bits = uint128(product[word + 1], product[word]);
  if (bit == 0) return bits;
  return bits >> bit | Uint128{product[word + 2]} << (128 - bit);
}

}  // namespace

Spectrum rotary(const RotaryOptions& options) {
  check(options);
  const auto pairs = static_cast<int>(options.dim / 2);
  const auto first_column = static_cast<int>(options.first_column);
  const bool half_split = options.pairing == Pairing::kHalfSplit;
  Spectrum spectrum;
  spectrum.pairs.resize(static_cast<size_t>(pairs));
  for (int f = 0; f < pairs; ++f) {
    Spectrum::Pair& pair = spectrum.pairs[static_cast<size_t>(f)];
    pair.first = first_column + (half_split ? f : 2 * f);
    pair.second = first_column + (half_split ? f + pairs : 2 * f + 1);
    pair.frequency = pow(options.base, Real(-f) / Real(pairs));
  }
  return options.float32_frequencies ? with_float32_frequencies(std::move(spectrum)) : spectrum;
}

Spectrum with_float32_frequencies(Spectrum spectrum) {
  for (Spectrum::Pair& pair : spectrum.pairs) pair.frequency = float_nearest(pair.frequency);
  return spectrum;
}

Spectrum clockwise(Spectrum spectrum) {
  for (Spectrum::Pair& pair : spectrum.pairs) pair.frequency = -pair.frequency;
  return spectrum;
}

Spectrum with_xpos(Spectrum spectrum, double gamma, double scale_base) {
  for (const auto& [name, value] : {std::pair{"gamma", gamma}, {"scale_base", scale_base}}) {
    if (!(value > 0 && std::isfinite(value))) {
      fail("xpos: " + std::string(name) + ": expected a finite number above 0, but got " +
           std::to_string(value));
    }
  }
  const auto pairs = static_cast<double>(spectrum.pairs.size());
  double f = 0;
  for (Spectrum::Pair& pair : spectrum.pairs) {
    pair.growth = std::log((f / pairs + gamma) / (1 + gamma)) / scale_base;
    ++f;
  }
  return spectrum;
}

Spectrum with_uniform_growth(Spectrum spectrum, double xi) {
  if (!(xi > 0 && xi <= 1)) {
    fail("xpos: xi: expected a number above 0 and at most 1, but got " + std::to_string(xi));
  }
  for (Spectrum::Pair& pair : spectrum.pairs) pair.growth = std::log(xi);
  return spectrum;
}

Rotation rotation(const Spectrum& spectrum) {
  Rotation result;
  result.gain = spectrum.gain;
  result.pairs.reserve(spectrum.pairs.size());
  for (const Spectrum::Pair& pair : spectrum.pairs) {
    result.pairs.push_back(
        {pair.first, pair.second, turns(pair.frequency), pair.growth, pair.axis});
  }
  return result;
}

Turns turns(Real radians) {
  if (!(std::fabs(radians.high) < 0x1p64 && std::isfinite(radians.low))) {
    fail("turns: radians: expected a finite number below 2^64, but got " +
         std::to_string(radians.high));
  }
  Uint128 sum = 0;
  for (double part : {radians.high, radians.low}) {
    const Uint128 fraction = fraction_of_turn(std::fabs(part));
    sum += part < 0 ? -fraction : fraction;
  }
  return {static_cast<uint64_t>(sum >> 64), static_cast<uint64_t>(sum)};
}

}  // namespace sextant
