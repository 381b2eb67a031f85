#include "sextant/position/stretch/stretch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/position/stretch/ramp.h"

namespace sextant {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<double> frequencies(const Spectrum& spectrum) {
  std::vector<double> result;
  for (const Spectrum::Pair& pair : spectrum.pairs) {
    result.push_back(static_cast<double>(pair.frequency));
  }
  return result;
}

// Every stretch, with this factor, for a spectrum of 64 pairs with base 1e4 trained on 4096 tokens.
std::vector<Stretch> all_by(double factor) {
  return {Linear{factor},
          Ntk{factor},
          NtkMixed{factor, 1},
          NtkMixed{factor, 0.75},
          ByParts{.factor = factor, .original_length = 4096},
          PartNtk{.factor = factor, .original_length = 4096},
          Yarn{.factor = factor, .original_length = 4096},
          Proportional{.part = 1, .factor = factor}};
}

TEST(Stretch, ByOneIsTheIdentityBitByBit) {
  const Spectrum plain = rotary({.dim = 128});
  for (const Stretch& stretch : all_by(1)) {
    if (std::holds_alternative<PartNtk>(stretch)) continue;  // mixes three equal spectra: 2^-100
    SCOPED_TRACE(stretch.index());
    const Spectrum same = stretched(plain, stretch);
    EXPECT_EQ(same.gain, 1);
    for (size_t f = 0; f < plain.pairs.size(); ++f) {
      EXPECT_EQ(same.pairs[f].frequency.high, plain.pairs[f].frequency.high) << f;
      EXPECT_EQ(same.pairs[f].frequency.low, plain.pairs[f].frequency.low) << f;
    }
  }
  EXPECT_EQ(frequencies(stretched(plain, Stretch{})), frequencies(plain));
}

TEST(Stretch, NoPairIsSlowerThanInterpolatedOrFasterThanItWas) {
  const std::vector<double> plain = frequencies(rotary({.dim = 128}));
  for (const Stretch& stretch : all_by(8)) {
    SCOPED_TRACE(stretch.index());
    const std::vector<double> slower = frequencies(stretched(rotary({.dim = 128}), stretch));
    for (size_t f = 0; f < plain.size(); ++f) {
      EXPECT_LE(slower[f], plain[f] * (1 + 1e-15)) << f;
      EXPECT_GE(slower[f], plain[f] / 8 * (1 - 1e-15)) << f;
      if (f > 0) {
        EXPECT_LE(slower[f], slower[f - 1]) << f;
      }
    }
    EXPECT_NEAR(slower.back(), plain.back() / 8, 1e-18) << "the slowest is interpolated";
  }
}

TEST(Stretch, MoreIsSlower) {
  for (size_t kind = 0; kind < all_by(1).size(); ++kind) {
    std::vector<double> before = frequencies(rotary({.dim = 64}));
    for (const double factor : {1.5, 2.0, 7.0, 64.0}) {
      const std::vector<double> now =
          frequencies(stretched(rotary({.dim = 64}), all_by(factor)[kind]));
      for (size_t f = 0; f < now.size(); ++f) {
        EXPECT_LE(now[f], before[f] * (1 + 1e-15)) << kind << " " << factor << " " << f;
      }
      before = now;
    }
  }
}

TEST(Stretch, NtkIsAnotherBase) {
  const double base = 10000 * std::pow(4, 128.0 / 126);
  const std::vector<double> rebased = frequencies(rotary({.dim = 128, .base = base}));
  const std::vector<double> ntk = frequencies(stretched(rotary({.dim = 128}), Ntk{4}));
  for (size_t f = 0; f < ntk.size(); ++f) EXPECT_NEAR(ntk[f] / rebased[f], 1, 1e-14);
  EXPECT_EQ(ntk.front(), 1);
}

TEST(Stretch, MixedNtkLiesBetweenInterpolationAndFixed) {
  const Spectrum plain = rotary({.dim = 32});
  const auto interpolated = frequencies(stretched(plain, Linear{12}));
  const auto none = frequencies(stretched(plain, NtkMixed{12, 0}));
  for (size_t f = 0; f < none.size(); ++f) EXPECT_NEAR(none[f] / interpolated[f], 1, 1e-15);
}

// The paper's limits: pairs with 32 or more turns in the trained length are kept, with one or fewer
// interpolated.
TEST(Stretch, PartsAreToldByTurns) {
  const Spectrum plain = rotary({.dim = 128});
  const ByParts parts{.factor = 8, .original_length = 4096};
  const Spectrum result = stretched(plain, parts);
  int kept = 0, ramped = 0, interpolated = 0;
  for (size_t f = 0; f < plain.pairs.size(); ++f) {
    const double before = plain.pairs[f].frequency.high, after = result.pairs[f].frequency.high;
    const double turns = 4096 * before / (2 * std::numbers::pi);
    const double share = std::clamp((turns - 1) / 31, 0.0, 1.0);
    EXPECT_NEAR(after / before, (1 - share) / 8 + share, 1e-14);
    (turns >= 32 ? kept : turns <= 1 ? interpolated : ramped) += 1;
    if (turns >= 32) {
      EXPECT_EQ(after, before);
    }
  }
  EXPECT_EQ(kept, 21);
  EXPECT_EQ(ramped + interpolated, 43);
}

TEST(Stretch, EqualEndsAreAStepAndDivideByNothing) {
  // Llama 4 Scout has low_freq_factor = high_freq_factor = 1.
  const Spectrum plain = rotary({.dim = 128, .base = 5e5});
  const Spectrum result =
      stretched(plain, ByParts{.factor = 8, .original_length = 8192, .slow = 1, .fast = 1});
  for (size_t f = 0; f < plain.pairs.size(); ++f) {
    const double frequency = plain.pairs[f].frequency.high;
    const bool keeps = 8192 * frequency / (2 * std::numbers::pi) >= 1;
    EXPECT_EQ(result.pairs[f].frequency.high, keeps ? frequency : frequency / 8) << f;
  }
}

// The ends of the ramp in the official code (rotary.md 3.3).
TEST(Yarn, RampsEndWhereThoseOfReleasedModelsDo) {
  const auto ends = [](PairRamp::Options options) {
    const PairRamp ramp = PairRamp::between(options, "yarn");
    return std::vector<double>{ramp.low.high, ramp.high.high};
  };
  using ::testing::DoubleNear;
  using ::testing::ElementsAre;
  const PairRamp::Options gpt_oss{
      .pairs = 32, .base = 150000, .original_length = 4096, .truncate = false};
  EXPECT_THAT(ends(gpt_oss), ElementsAre(DoubleNear(8.093, 5e-4), DoubleNear(17.398, 5e-4)));
  PairRamp::Options whole = gpt_oss;
  whole.truncate = true;
  EXPECT_THAT(ends(whole), ElementsAre(8, 18));
  EXPECT_THAT(ends({.pairs = 64, .base = 10000, .original_length = 4096}), ElementsAre(20, 46));
  EXPECT_THAT(ends({.pairs = 32, .base = 10000, .original_length = 4096}), ElementsAre(10, 23));
  // Kimi K2: both betas are 1, so the ramp is a step.
  EXPECT_THAT(ends({.pairs = 32, .base = 50000, .original_length = 4096, .fast = 1, .slow = 1}),
              ElementsAre(19, 20));
  // All pairs have enough turns: the ramp has no width.
  EXPECT_THAT(ends({.pairs = 1, .base = 2, .original_length = 4096}),
              ElementsAre(DoubleNear(8, 8), 1));
}

TEST(Yarn, GainIsGivenOrComputed) {
  const Yarn plain{.factor = 40, .original_length = 4096};
  const auto with = [&](auto&& set) {
    Yarn yarn = plain;
    set(yarn);
    return yarn_gain(yarn);
  };
  EXPECT_DOUBLE_EQ(yarn_gain(plain), 0.1 * std::log(40) + 1);
  EXPECT_EQ(with([](Yarn& y) { y.attention_factor = 1.25; }), 1.25);
  EXPECT_EQ(with([](Yarn& y) { y.mscale = y.mscale_all_dim = 1; }), 1) << "DeepSeek V3";
  EXPECT_DOUBLE_EQ(with([](Yarn& y) { y.mscale = 1, y.mscale_all_dim = 0.707; }),
                   (0.1 * std::log(40) + 1) / (0.0707 * std::log(40) + 1));
  EXPECT_DOUBLE_EQ(with([](Yarn& y) { y.mscale = 0.707; }), 0.1 * std::log(40) + 1)
      << "one of the two alone counts for nothing";
  EXPECT_EQ(stretched(rotary({.dim = 64}), plain).gain, yarn_gain(plain));
}

TEST(Yarn, DeepSeekScalesScoresToo) {
  EXPECT_NEAR(yarn_score_factor({.factor = 40, .mscale_all_dim = 1}), 1.8739, 5e-5);
  EXPECT_NEAR(yarn_score_factor({.factor = 40, .mscale_all_dim = 0.707}), 1.5896, 5e-5);
  EXPECT_EQ(yarn_score_factor({.factor = 40}), 1);
}

TEST(LongRope, DividesEachPairAndKnowsItsGain) {
  const Spectrum result =
      stretched(rotary({.dim = 4}), LongRope{.factors = {1.5, 4}, .gain = 1.25});
  EXPECT_DOUBLE_EQ(result.pairs[0].frequency.high, 1 / 1.5);
  EXPECT_DOUBLE_EQ(result.pairs[1].frequency.high, 0.01 / 4);
  EXPECT_EQ(result.gain, 1.25);
  EXPECT_NEAR(longrope_gain(32, 4096), 1.19024, 5e-6) << "Phi-3 128k";
  EXPECT_EQ(longrope_gain(0.5, 4096), 1);
}

TEST(Proportional, KeepsTheFastestPairsOfTheFullLadder) {
  const std::vector<double> plain = frequencies(rotary({.dim = 20, .base = 1e6}));
  const std::vector<double> some = frequencies(
      stretched(rotary({.dim = 20, .base = 1e6}), Proportional{.part = 0.25, .factor = 2}));
  for (size_t f = 0; f < plain.size(); ++f) EXPECT_EQ(some[f], f < 2 ? plain[f] / 2 : 0) << f;
}

TEST(Dynamic, FactorsAreOneUpToTheTrainingLength) {
  for (const Growth growth :
       {Growth::kRatio, Growth::kHuggingFace, Growth::kDoubling, Growth::kStep}) {
    const DynamicStretch dynamic{
        .stretch = Linear{}, .growth = growth, .original_length = 2048, .factor = 3};
    EXPECT_EQ(dynamic_factor(dynamic, 1), 1);
    EXPECT_EQ(dynamic_factor(dynamic, 2048), 1);
    double before = 1;
    for (int64_t length = 2049; length < 40000; length += 379) {
      const double now = dynamic_factor(dynamic, length);
      EXPECT_GE(now, before) << length;
      before = now;
    }
  }
}

TEST(Dynamic, GrowsAsEachCodeSays) {
  const auto factor = [](Growth growth, double f, int64_t length) {
    return dynamic_factor(
        {.stretch = Ntk{}, .growth = growth, .original_length = 2048, .factor = f}, length);
  };
  EXPECT_EQ(factor(Growth::kRatio, 1, 5120), 2.5);
  EXPECT_EQ(factor(Growth::kHuggingFace, 2, 4096), 3);
  EXPECT_EQ(factor(Growth::kHuggingFace, 4, 4096), 5);
  EXPECT_EQ(factor(Growth::kStep, 32, 2049), 2);
  EXPECT_EQ(factor(Growth::kDoubling, 1, 2049), 3);
  EXPECT_EQ(factor(Growth::kDoubling, 1, 4096), 3);
  EXPECT_EQ(factor(Growth::kDoubling, 1, 4097), 7);
  EXPECT_EQ(factor(Growth::kDoubling, 1, 8193), 15);
  EXPECT_GT(factor(Growth::kDoubling, 1, std::numeric_limits<int64_t>::max()), 0x1p52);
}

TEST(Dynamic, ReplacesTheFactorOrTheList) {
  DynamicStretch dynamic{.stretch = Yarn{.original_length = 64, .mscale = 1},
                         .original_length = 64};
  const auto yarn = std::get<Yarn>(stretch_at(dynamic, 128));
  EXPECT_EQ(yarn.factor, 2);
  EXPECT_EQ(yarn.mscale, 1);
  dynamic.stretch = LongRope{.factors = {4, 5}, .gain = 1.2};
  dynamic.growth = Growth::kStep;
  dynamic.short_factors = {1, 1.5};
  EXPECT_EQ(std::get<LongRope>(stretch_at(dynamic, 64)).factors, std::vector<double>({1, 1.5}));
  EXPECT_EQ(std::get<LongRope>(stretch_at(dynamic, 65)).factors, std::vector<double>({4, 5}));
  EXPECT_EQ(std::get<LongRope>(stretch_at(dynamic, 65)).gain, 1.2);
}

template <class Action>
void expect_error(Action action, const std::string& words) {
  EXPECT_THAT(action, ThrowsMessage<Error>(HasSubstr(words)));
}

TEST(Stretch, ErrorsNameTheField) {
  const Spectrum plain = rotary({.dim = 8});
  for (const double factor : {0.5, 0.0, -1.0, kNaN, HUGE_VAL}) {
    for (const Stretch& stretch : all_by(factor)) {
      expect_error([&] { stretched(plain, stretch); }, ": factor: expected");
    }
  }
  const auto error_of = [&](const Stretch& stretch, const std::string& words) {
    expect_error([&] { stretched(plain, stretch); }, words);
  };
  error_of(Yarn{.factor = 2}, "yarn: original_length: expected at least 1, but got 0");
  error_of(Yarn{.factor = 2, .original_length = 8, .base = 1}, "yarn: base: expected");
  error_of(Yarn{.factor = 2, .original_length = 8, .beta_fast = 0}, "yarn: beta_fast: expected");
  error_of(Yarn{.factor = 2, .original_length = 8, .attention_factor = kNaN},
           "yarn: attention_factor: expected");
  error_of(Yarn{.factor = 2, .original_length = 8, .mscale = -1}, "yarn: mscale: expected");
  error_of(ByParts{.factor = 2}, "by-parts: original_length: expected");
  error_of(ByParts{.factor = 2, .original_length = 8, .slow = 4, .fast = 1},
           "by-parts: slow: expected at most fast");
  error_of(NtkMixed{2, -1}, "ntk-mixed: exponent: expected");
  error_of(LongRope{.factors = {1, 2}}, "longrope: factors: expected one for each of 4 pairs");
  error_of(LongRope{.factors = {1, 2, 0, 4}},
           "longrope: factors: expected a finite number above 0");
  error_of(Proportional{.part = 1.5}, "proportional: part: expected");
  expect_error([] { dynamic_factor({.stretch = Ntk{}}, 5); }, "dynamic: original_length: expected");
  expect_error([] { dynamic_factor({.stretch = Ntk{}, .original_length = 5}, 0); },
               "dynamic: length: expected");
}

}  // namespace
}  // namespace sextant
