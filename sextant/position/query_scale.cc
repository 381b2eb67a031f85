#include "sextant/position/query_scale.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sextant/base/error.h"

namespace sextant {
namespace {

void check(const QueryScale& scale) {
  const bool logn = scale.law == QueryLaw::kLogn || scale.law == QueryLaw::kLognUnclipped;
  const bool steps = scale.law == QueryLaw::kLlama4 || scale.law == QueryLaw::kMinistral;
  if ((logn && scale.length < 2) || (steps && scale.length < 1)) {
    fail("query scale: length: expected at least " + std::to_string(logn ? 2 : 1) + ", but got " +
         std::to_string(scale.length));
  }
  if (steps && !(scale.strength >= 0 && std::isfinite(scale.strength))) {
    fail("query scale: strength: expected a finite number of at least 0, but got " +
         std::to_string(scale.strength));
  }
}

double factor_at(const QueryScale& scale, int64_t position) {
  const auto seen = static_cast<double>(position) + 1;
  const auto steps = [&](int64_t n) {
    const int64_t whole = n / scale.length;
    return 1 + scale.strength * std::log1p(static_cast<double>(whole));
  };
  switch (scale.law) {
    case QueryLaw::kNone:
      return 1;
    case QueryLaw::kLogn:
    case QueryLaw::kLognUnclipped: {
      const double factor = std::log(seen) / std::log(static_cast<double>(scale.length));
      return scale.law == QueryLaw::kLogn ? std::max(1.0, factor) : factor;
    }
    case QueryLaw::kLog:
      return std::log(seen);
    case QueryLaw::kLlama4:
      return steps(position + 1);
    case QueryLaw::kMinistral:
      return steps(position);
  }
  fail("query scale: law: expected one of those there are, but got " +
       std::to_string(static_cast<int>(scale.law)));
}

}  // namespace

std::vector<double> query_factors(const QueryScale& scale, std::span<const int64_t> positions) {
  check(scale);
  std::vector<double> factors;
  factors.reserve(positions.size());
  for (const int64_t position : positions) {
    factors.push_back(factor_at(scale, std::max<int64_t>(position, 0)));
  }
  return factors;
}

}  // namespace sextant
