// The mathematics of all stretches, in the order of their headers, which have the formulas. Each
// maps frequencies pair by pair.
#include "sextant/position/stretch/stretch.h"

#include <cmath>
#include <utility>

#include "sextant/position/stretch/check.h"
#include "sextant/position/stretch/ramp.h"

namespace sextant {
namespace {

// ceil(log2(length / original)), at least 0, in integer arithmetic.
int doublings(int64_t length, int64_t original) {
  int n = 0;
  for (int64_t reach = original; reach < length; ++n) {
    if (reach > length / 2) return n + 1;  // 2 * reach might overflow
    reach *= 2;
  }
  return n;
}

}  // namespace

Spectrum stretched(Spectrum spectrum, const Stretch& stretch) {
  return std::visit(
      [&](const auto& kind) {
        if constexpr (std::is_same_v<std::decay_t<decltype(kind)>, std::monostate>) {
          return std::move(spectrum);
        } else {
          return stretched(std::move(spectrum), kind);
        }
      },
      stretch);
}

double dynamic_factor(const DynamicStretch& dynamic, int64_t length) {
  check_length("dynamic", "original_length", dynamic.original_length);
  check_length("dynamic", "length", length);
  check_factor("dynamic", dynamic.factor);
  if (length <= dynamic.original_length) return 1;
  const double times = static_cast<double>(length) / static_cast<double>(dynamic.original_length);
  switch (dynamic.growth) {
    case Growth::kRatio:
      return times;
    case Growth::kHuggingFace:
      return dynamic.factor * times - (dynamic.factor - 1);
    case Growth::kDoubling:
      return std::ldexp(1, doublings(length, dynamic.original_length) + 1) - 1;
    case Growth::kStep:
      return 2;
  }
  fail("dynamic: growth: expected one of those there are, but got " +
       std::to_string(static_cast<int>(dynamic.growth)));
}

Stretch stretch_by(const DynamicStretch& dynamic, double factor) {
  Stretch result = dynamic.stretch;
  if (auto* longrope = std::get_if<LongRope>(&result)) {
    if (dynamic.growth != Growth::kStep) {
      longrope->factors = grown_longrope_factors(longrope->factors, dynamic.factor, factor);
    } else if (factor == 1) {
      longrope->factors = dynamic.short_factors;
      longrope->gain = dynamic.short_gain.value_or(longrope->gain);
    }
    return result;
  }
  std::visit(
      [&](auto& kind) {
        if constexpr (requires { kind.factor; }) kind.factor = factor;
      },
      result);
  return result;
}

Spectrum stretched(Spectrum spectrum, const Linear& linear) {
  check_factor("linear", linear.factor);
  for (Spectrum::Pair& pair : spectrum.pairs) pair.frequency = pair.frequency / Real(linear.factor);
  return spectrum;
}

Spectrum stretched(Spectrum spectrum, const Ntk& ntk) {
  check_factor("ntk", ntk.factor);
  const auto pairs = static_cast<double>(spectrum.pairs.size());
  if (pairs < 2) return spectrum;  // the only pair is the fastest one
  double f = 0;
  for (Spectrum::Pair& pair : spectrum.pairs) {
    pair.frequency = pair.frequency * pow(ntk.factor, Real(-f) / Real(pairs - 1));
    ++f;
  }
  return spectrum;
}

Spectrum stretched(Spectrum spectrum, const NtkMixed& ntk) {
  check_factor("ntk-mixed", ntk.factor);
  if (!(ntk.exponent >= 0 && std::isfinite(ntk.exponent))) {
    fail("ntk-mixed: exponent: expected a finite number of at least 0, but got " +
         std::to_string(ntk.exponent));
  }
  const auto pairs = static_cast<double>(spectrum.pairs.size());
  double f = 0;
  for (Spectrum::Pair& pair : spectrum.pairs) {
    ++f;
    // a (f+1)^b = ln s * ((f+1) / n)^b
    pair.frequency = pair.frequency * pow(ntk.factor, -pow(Real(f) / Real(pairs), ntk.exponent));
  }
  return spectrum;
}

Spectrum stretched(Spectrum spectrum, const Proportional& proportional) {
  check_factor("proportional", proportional.factor);
  if (!(proportional.part > 0 && proportional.part <= 1)) {
    fail("proportional: part: expected a number above 0 and at most 1, but got " +
         std::to_string(proportional.part));
  }
  const auto pairs = static_cast<double>(spectrum.pairs.size());
  const auto kept = static_cast<size_t>(std::floor(proportional.part * pairs));
  for (size_t f = 0; f < spectrum.pairs.size(); ++f) {
    Real& frequency = spectrum.pairs[f].frequency;
    frequency = f < kept ? frequency / Real(proportional.factor) : Real(0);
  }
  return spectrum;
}

double longrope_gain(double factor, int64_t original_length) {
  if (original_length < 2) {
    fail("longrope: original_length: expected at least 2, but got " +
         std::to_string(original_length));
  }
  if (factor <= 1) return 1;
  return std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original_length)));
}

std::vector<double> grown_longrope_factors(const std::vector<double>& factors, double factor,
                                           double times) {
  if (!(factor > 1 && std::isfinite(factor))) {
    fail("longrope: factor: expected a finite number above 1, but got " + std::to_string(factor));
  }
  const double grown = (times - 1) / (factor - 1);
  std::vector<double> result;
  result.reserve(factors.size());
  for (const double lambda : factors) result.push_back(1 + (lambda - 1) * grown);
  return result;
}

Spectrum stretched(Spectrum spectrum, const LongRope& longrope) {
  if (longrope.factors.size() != spectrum.pairs.size()) {
    fail("longrope: factors: expected one for each of " + std::to_string(spectrum.pairs.size()) +
         " pairs, but got " + std::to_string(longrope.factors.size()));
  }
  check_above_0("longrope", "gain", longrope.gain);
  spectrum.gain *= longrope.gain;
  for (size_t f = 0; f < spectrum.pairs.size(); ++f) {
    check_above_0("longrope", "factors", longrope.factors[f]);
    spectrum.pairs[f].frequency = spectrum.pairs[f].frequency / Real(longrope.factors[f]);
  }
  return spectrum;
}

Spectrum stretched(Spectrum spectrum, const ByParts& parts) {
  check_factor("by-parts", parts.factor);
  check_length("by-parts", "original_length", parts.original_length);
  check_above_0("by-parts", "slow", parts.slow);
  check_above_0("by-parts", "fast", parts.fast);
  if (parts.slow > parts.fast) {
    fail("by-parts: slow: expected at most fast, " + std::to_string(parts.fast) + ", but got " +
         std::to_string(parts.slow));
  }
  for (Spectrum::Pair& pair : spectrum.pairs) {
    const Real turns = turns_within(parts.original_length, pair.frequency);
    // Both ends are inclusive, so that slow = fast gives a step and no division by 0.
    Real kept = 0;
    if (at_least(turns, parts.fast)) {
      kept = 1;
    } else if (at_least(turns, parts.slow)) {
      kept = (turns - parts.slow) / (Real(parts.fast) - Real(parts.slow));
    }
    pair.frequency = partly_divided(pair.frequency, kept, parts.factor);
  }
  return spectrum;
}

Spectrum stretched(Spectrum spectrum, const PartNtk& parts) {
  check_factor("part-ntk", parts.factor);
  const auto ramp = [&](double fast, double slow) {
    return PairRamp::between({.pairs = spectrum.pairs.size(),
                              .base = parts.base,
                              .original_length = parts.original_length,
                              .fast = fast,
                              .slow = slow,
                              .truncate = true},
                             "part-ntk");
  };
  // Blends from interpolation to NTK where pairs complete about one turn within L, and from NTK to
  // plain RoPE between 2 and 16 turns.
  const PairRamp to_ntk = ramp(1.25, 0.75), to_plain = ramp(16, 2);
  const auto pairs = static_cast<double>(spectrum.pairs.size());
  double f = 0;
  for (Spectrum::Pair& pair : spectrum.pairs) {
    const Real linear = pair.frequency / Real(parts.factor);
    const Real ntk =
        pairs < 2 ? pair.frequency : pair.frequency * pow(parts.factor, Real(-f) / Real(pairs - 1));
    const Real one = 1, a = to_ntk.interpolated(f), b = to_plain.interpolated(f);
    pair.frequency = (linear * a + ntk * (one - a)) * b + pair.frequency * (one - b);
    ++f;
  }
  return spectrum;
}

double yarn_temperature(double factor, double weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

double yarn_gain(const Yarn& yarn) {
  if (yarn.attention_factor) {
    check_above_0("yarn", "attention_factor", *yarn.attention_factor);
    return *yarn.attention_factor;
  }
  for (const auto& [field, value] :
       {std::pair{"mscale", yarn.mscale}, {"mscale_all_dim", yarn.mscale_all_dim}}) {
    if (value && !(*value >= 0 && std::isfinite(*value))) {
      fail("yarn: " + std::string(field) + ": expected a finite number of at least 0, but got " +
           std::to_string(*value));
    }
  }
  const double some = yarn.mscale.value_or(0), all = yarn.mscale_all_dim.value_or(0);
  if (some == 0 || all == 0) return yarn_temperature(yarn.factor);
  return yarn_temperature(yarn.factor, some) / yarn_temperature(yarn.factor, all);
}

double yarn_score_factor(const Yarn& yarn) {
  const double temperature = yarn_temperature(yarn.factor, yarn.mscale_all_dim.value_or(0));
  return temperature * temperature;
}

Spectrum stretched(Spectrum spectrum, const Yarn& yarn) {
  check_factor("yarn", yarn.factor);
  spectrum.gain *= yarn_gain(yarn);
  if (yarn.ramp == Yarn::Ramp::kTurns) {
    return stretched(std::move(spectrum), ByParts{.factor = yarn.factor,
                                                  .original_length = yarn.original_length,
                                                  .slow = yarn.beta_slow,
                                                  .fast = yarn.beta_fast});
  }
  const PairRamp ramp = PairRamp::between({.pairs = spectrum.pairs.size(),
                                           .base = yarn.base,
                                           .original_length = yarn.original_length,
                                           .fast = yarn.beta_fast,
                                           .slow = yarn.beta_slow,
                                           .truncate = yarn.truncate},
                                          "yarn");
  double f = 0;
  for (Spectrum::Pair& pair : spectrum.pairs) {
    const Real one = 1;
    pair.frequency = partly_divided(pair.frequency, one - ramp.interpolated(f), yarn.factor);
    ++f;
  }
  return spectrum;
}

}  // namespace sextant
