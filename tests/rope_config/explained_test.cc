// The values in the explanation of a configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/rope_config/explain.h"
#include "tests/rope_config/published_configs.h"

namespace sextant::testing {
namespace {

using nlohmann::json;

TEST(Explained, SaysWhereEachPairLeavesWhatTrainingShowed) {
  // YaRN by 4 on 32768: only beyond 4 * 32768 does the slowest pair reach angles unseen in
  // training.
  const Explained yarn = explain(rope("qwen2.5-7b-yarn"), 0);
  EXPECT_EQ(yarn.trained, 32768);
  EXPECT_EQ(yarn.target, 131072);
  EXPECT_EQ(yarn.pairs[0].leaves, 0);
  EXPECT_NEAR(static_cast<double>(yarn.pairs[63].leaves), 4.0 * 32767 + 1, 1);
  EXPECT_EQ(yarn.pairs[0].kept, 1);
  EXPECT_EQ(yarn.pairs[63].kept, 0);
  EXPECT_NEAR(yarn.rotated_scale, std::pow(0.1 * std::log(4) + 1, 2) / std::sqrt(128), 1e-15);
  // A plain configuration leaves the trained angles beyond its training length.
  const Explained plain = explain(rope("codellama-7b"), 65536);
  EXPECT_EQ(plain.first_leaving, 16384);
  // The error of float32 angles at 131072 is 4e-3 or more (rotary.md 6.1).
  EXPECT_GT(yarn.float32_error, 1e-3);
  EXPECT_LT(yarn.float32_error, 1e-2);
}

TEST(Explained, SeesNoFurtherThanTheWindow) {
  // The slowest pair of base 1e4 reaches untrained angles from 32768 on, but no query sees that
  // far.
  const Explained window = explain(rope("mistral-7b"), 65536);
  EXPECT_EQ(window.reach, 4095);
  EXPECT_EQ(window.first_leaving, 0);
  EXPECT_EQ(explain(rope("gpt-oss"), 0).reach, 0) << "every second layer sees all";
  EXPECT_EQ(explain(rope("qwen2.5-7b-1m"), 1000000).reach, 262144);
}

TEST(Explained, SaysWhatTheMethodIsGiven) {
  const json yarn = parameters_of(rope("qwen2.5-7b-yarn"));
  EXPECT_EQ(yarn.at("beta_fast"), 32) << "which the file does not say";
  EXPECT_EQ(yarn.at("beta_slow"), 1);
  EXPECT_EQ(yarn.at("truncate"), true);
  EXPECT_EQ(yarn.at("factor"), 4);
  EXPECT_EQ(parameters_of(rope("phi-3-128k")).at("long_factor").size(), 4U);
  EXPECT_EQ(law_of(rope("qwen-1").scaling.query_scale), "max(1, ln(i + 1) / ln 8192)");
  EXPECT_EQ(law_of(rope("ministral-3").scaling.query_scale), "1 + 0.1 ln(1 + floor(i / 16384))");
  EXPECT_EQ(name_of(rope("qwen3-vl-8b").scaling).name, "M-RoPE");
  const Explained blocks = explain(rope("qwen2-vl"), 0);
  EXPECT_EQ(blocks.pairs[15].axis, 0);
  EXPECT_EQ(blocks.pairs[16].axis, 1);
  EXPECT_EQ(blocks.pairs[63].axis, 2);
  const Explained woven = explain(rope("qwen3-vl-8b"), 0);
  EXPECT_EQ(woven.pairs[1].axis, 1);
  EXPECT_EQ(woven.pairs[2].axis, 2);
  EXPECT_EQ(woven.pairs[63].axis, 0);
  // LongRoPE's long factors apply to sequences beyond L only.
  EXPECT_EQ(explain(rope("phi-3-128k"), 2000).factor, 1.25);
  EXPECT_EQ(explain(rope("phi-3-128k"), 5000).factor, 32);
}

}  // namespace
}  // namespace sextant::testing
