#include "sextant/position/sandwich.h"

#include <cmath>
#include <string>

#include "sextant/base/error.h"
#include "sextant/position/double_double.h"
#include "sextant/position/spectrum.h"
#include "sextant/position/turns.h"

namespace sextant {
namespace {

// turns per unit of distance, [width / 2]
std::vector<Turns> frequencies(int64_t width, int64_t first) {
  if (width < 2 || width % 2 != 0) {
    fail("sandwich: width: expected an even number of at least 2, but got " +
         std::to_string(width));
  }
  if (first < 0) {
    fail("sandwich: first: expected at least 0, but got " + std::to_string(first));
  }
  std::vector<Turns> result;
  for (int64_t i = first; i < first + width / 2; ++i) {
    const Real exponent = Real(static_cast<double>(-2 * i)) / Real(static_cast<double>(width));
    result.push_back(turns(pow(10000.0, exponent)));
  }
  return result;
}

}  // namespace

std::vector<double> sandwich_curve(std::span<const int64_t> distances, int64_t width,
                                   int64_t first) {
  const std::vector<Turns> all = frequencies(width, first);
  std::vector<double> curve;
  for (const int64_t distance : distances) {
    double sum = 0;
    for (const Turns& frequency : all) sum += cos_sin(frequency * distance).cos;
    curve.push_back(sum);
  }
  return curve;
}

std::vector<double> sandwich_slopes(int64_t heads, double ratio) {
  if (heads < 1) {
    fail("sandwich: heads: expected at least 1, but got " + std::to_string(heads));
  }
  if (!(ratio > 0 && std::isfinite(ratio))) {
    fail("sandwich: ratio: expected a finite number above 0, but got " + std::to_string(ratio));
  }
  std::vector<double> slopes;
  for (int64_t h = 1; h <= heads; ++h)
    slopes.push_back(static_cast<double>(heads) / (ratio * static_cast<double>(h)));
  return slopes;
}

}  // namespace sextant
