// Compares stretches and query scales with frequencies of official implementations.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sextant/position/query_scale.h"
#include "sextant/position/stretch/stretch.h"
#include "tests/golden/golden.h"

namespace sextant::golden {
namespace {

void expect_frequencies(const Golden& file, const std::string& array, const Spectrum& spectrum,
                        double tolerance) {
  Doubles frequencies;
  for (const auto& pair : spectrum.pairs)
    frequencies.push_back(static_cast<double>(pair.frequency));
  const Doubles expected = file.numbers(array);
  ASSERT_EQ(frequencies.size(), expected.size()) << array;
  for (size_t f = 0; f < frequencies.size(); ++f) {
    // The bound is relative: the slowest pairs matter most.
    EXPECT_NEAR(frequencies[f], expected[f], tolerance * std::fabs(expected[f]))
        << array << " " << f;
  }
}

// The rounding of frequencies in float64: a few ulp.
constexpr double kLadder = 2e-15;

TEST(Stretches, NtkOfSuAndBloc97) {
  const Golden file("ext_ntk_variants");
  for (const int64_t dim : {32, 128}) {
    for (const int factor : {4, 12}) {
      std::string start = "d";
      start += std::to_string(dim) + "_k" + std::to_string(factor) + "_";
      const Spectrum plain = rotary({.dim = dim});
      const double k = factor;
      expect_frequencies(file, start + "ntk_original", stretched(plain, Ntk{k}), kLadder);
      expect_frequencies(file, start + "ntk_fixed_b1", stretched(plain, NtkMixed{k, 1}), kLadder);
      expect_frequencies(file, start + "ntk_mixed_b0.75", stretched(plain, NtkMixed{k, 0.75}),
                         kLadder);
      expect_frequencies(file, start + "ntk_mixed_b0.625", stretched(plain, NtkMixed{k, 0.625}),
                         kLadder);
      expect_frequencies(file, start + "pi_b0", stretched(plain, NtkMixed{k, 0}), kLadder);
    }
  }
  expect_frequencies(file, "official_d128_k12_b0_75",
                     stretched(rotary({.dim = 128}), NtkMixed{12, 0.75}), kLadder);
}

TEST(Stretches, FirstByParts) {
  const Golden file("ext_ntk_by_parts_old");
  expect_frequencies(file, "inv_freq",
                     stretched(rotary({.dim = 32}), PartNtk{.factor = 4, .original_length = 2048}),
                     kLadder);
}

TEST(Stretches, Yarn) {
  const Golden file("ext_yarn");
  const Spectrum yarn =
      stretched(rotary({.dim = 32}), sextant::Yarn{.factor = 4, .original_length = 2048});
  expect_frequencies(file, "inv_freq", yarn, kLadder);
  EXPECT_NEAR(yarn.gain, file.meta().at("mscale").get<double>(), 1e-15);
}

TEST(Stretches, DynamicNtkOfHuggingFaceAndQwen) {
  const Golden file("dynamic_ntk_tables");
  const Doubles factors = file.numbers("factor"), frequencies = file.numbers("inv_freq");
  const auto lengths = file.integers("seq");
  DynamicStretch dynamic{.stretch = Ntk{}, .growth = Growth::kHuggingFace, .original_length = 2048};
  auto expected = frequencies.begin();
  for (const double factor : factors) {
    dynamic.factor = factor;
    for (const int64_t length : lengths) {
      for (const auto& pair : stretched(rotary({.dim = 128}), stretch_at(dynamic, length)).pairs) {
        EXPECT_NEAR(static_cast<double>(pair.frequency) / *expected++, 1, 1e-14)
            << factor << " " << length;
      }
    }
  }
  dynamic.growth = Growth::kDoubling;
  std::vector<int64_t> alphas;
  for (const int64_t length : file.integers("qwen_len")) {
    alphas.push_back(static_cast<int64_t>(dynamic_factor(dynamic, length)));
  }
  EXPECT_EQ(alphas, file.integers("qwen_alpha"));
}

// The file has a new instance of the module for each length; an instance that is called again keeps
// its earlier frequencies, which is a defect.
TEST(Stretches, DynamicNtkOfAFreshModule) {
  const Golden file("dynamic_ntk_hf_state");
  const DynamicStretch dynamic{
      .stretch = Ntk{}, .growth = Growth::kHuggingFace, .original_length = 16, .factor = 2};
  Doubles got;
  for (const int64_t length : file.integers("seq_len")) {
    for (const auto& pair : stretched(rotary({.dim = 8}), stretch_at(dynamic, length)).pairs) {
      got.push_back(static_cast<double>(pair.frequency));
    }
  }
  EXPECT_EQ(difference("fresh", got, file.numbers("inv_freq_fresh"), 0x1p-23), "");
}

TEST(Stretches, DynamicYarnOfItsAuthors) {
  const Golden file("dynamic_yarn_repo_classes");
  const DynamicStretch dynamic{.stretch = sextant::Yarn{.original_length = 64},
                               .original_length = 64};
  for (const auto& [name, length] : {std::pair{"50", 50}, {"65", 65}, {"128", 128}, {"100", 128}}) {
    const Spectrum yarn = stretched(rotary({.dim = 32}), stretch_at(dynamic, length));
    expect_frequencies(file, std::string("yarn_inv_freq_after_") + name, yarn, kLadder);
    const Doubles gain = file.numbers(std::string("yarn_mscale_after_") + name);
    EXPECT_NEAR(yarn.gain, gain[0], 1e-15);
  }
}

TEST(Stretches, LongRopeOfMicrosoft) {
  const Golden file("ext_longrope_microsoft");
  const Doubles factors = file.numbers("rescale_factors");
  const double gain = longrope_gain(8, 64);
  EXPECT_NEAR(gain, file.meta().at("mscale_su").get<double>(), 1e-15);
  EXPECT_NEAR(yarn_temperature(8), file.meta().at("mscale_yarn").get<double>(), 1e-15);
  expect_frequencies(file, "inv_freq",
                     stretched(rotary({.dim = 16}), LongRope{.factors = factors, .gain = gain}),
                     kLadder);
  DynamicStretch dynamic{
      .stretch = LongRope{.factors = factors}, .original_length = 64, .factor = 8};
  Doubles got;
  for (const int64_t length : file.integers("dynamic_len")) {
    for (const auto& pair : stretched(rotary({.dim = 16}), stretch_at(dynamic, length)).pairs) {
      got.push_back(static_cast<double>(pair.frequency));
    }
  }
  EXPECT_EQ(difference("dynamic", got, file.numbers("dynamic_inv_freq"), 1e-15), "");
}

TEST(Stretches, ByPartsForEachQuery) {
  const Golden file("dynamic_exact_yarn_paper");
  const auto& meta = file.meta();
  const auto length = meta.at("L").get<int64_t>();
  const DynamicStretch dynamic{.stretch = ByParts{.original_length = length,
                                                  .slow = meta.at("beta_slow").get<double>(),
                                                  .fast = meta.at("beta_fast").get<double>()},
                               .original_length = length};
  Doubles frequencies, gains;
  for (const int64_t position : file.integers("pos")) {
    const Stretch stretch = stretch_at(dynamic, position + 1);
    const Spectrum plain = rotary({.dim = 8, .base = meta.at("base").get<double>()});
    for (const auto& pair : stretched(plain, stretch).pairs) {
      frequencies.push_back(static_cast<double>(pair.frequency));
    }
    gains.push_back(yarn_temperature(std::get<ByParts>(stretch).factor));
  }
  EXPECT_EQ(difference("theta", frequencies, file.numbers("theta"), 1e-15), "");
  EXPECT_EQ(difference("mscale", gains, file.numbers("mscale"), 1e-15), "");
}

TEST(Stretches, LognOfSuAndQwen) {
  const Golden file("logn_scale");
  const auto positions = file.integers("pos");
  Doubles clipped, unclipped;
  for (const int64_t length : file.integers("L")) {
    for (const double x : query_factors({QueryLaw::kLogn, length}, positions)) clipped.push_back(x);
    for (const double x : query_factors({QueryLaw::kLognUnclipped, length}, positions)) {
      unclipped.push_back(x);
    }
  }
  EXPECT_EQ(difference("rerope", clipped, file.numbers("rerope"), 1e-15), "");
  EXPECT_EQ(difference("qwen1", clipped, file.numbers("qwen1"), 1e-15), "");
  EXPECT_EQ(difference("unclipped", unclipped, file.numbers("unclipped"), 1e-15), "");
}

TEST(Stretches, ScalableSoftmaxIsLogOfTheKeysSeen) {
  const Golden file("ssmax");
  std::vector<int64_t> positions = file.integers("n");
  for (int64_t& n : positions) --n;
  EXPECT_EQ(
      difference("log_n", query_factors({QueryLaw::kLog}, positions), file.numbers("log_n"), 1e-15),
      "");
}

}  // namespace
}  // namespace sextant::golden
