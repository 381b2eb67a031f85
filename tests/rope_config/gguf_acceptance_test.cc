// GGUF files are read as llama.cpp reads them, beyond the common keys, and a converted file has the
// same meaning for every layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/base/error.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/write_config.h"
#include "tests/rope_config/gguf_files.h"

namespace sextant::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

// The configurations of a file of 8 layers.
std::vector<RopeConfig> read(const std::string& arch, const Metadata& keys,
                             const Tensors& tensors = {}) {
  return read_gguf(arch, with({{"block_count", uint64_t{8}}}, keys), tensors).configs;
}

double gain(const RopeConfig& rope) { return spectrum_of(rope, 1).gain; }

std::vector<float> halves(size_t pairs, float slow) {
  std::vector<float> divisors(pairs, slow);
  std::fill_n(divisors.begin(), pairs / 2, 1.0F);
  return divisors;
}

// A config.json with 8 layers of 32 heads of 128 channels.
ReadRopeConfig config(const std::string& fields) {
  return read_rope_config_bytes(R"({"hidden_size": 4096, "num_attention_heads": 32,
      "num_key_value_heads": 8, "max_position_embeddings": 131072, "num_hidden_layers": 8,
      "head_dim": 128, )" + fields + "}",
                                {});
}

ReadRopeConfig converted(const ReadRopeConfig& from) {
  return read_rope_config_bytes(write_rope_config(from, "gguf"), {});
}

void expect_refused(const ReadRopeConfig& from, const std::string& to, const std::string& message) {
  EXPECT_THAT([&] { write_rope_config(from, to); }, ThrowsMessage<Error>(HasSubstr(message)));
}

std::vector<int64_t> rotating(const ReadRopeConfig& read) {
  for (const RopeConfig& group : read.configs) {
    if (group.rotates) return group.layer_numbers;
  }
  return {};
}

TEST(GgufArchitectures, AreExplainedThoughLlamaCppHasNoModelOfThem) {
  const RopeConfig gptj = read("gptj", {{"rope.dimension_count", uint64_t{64}}}).at(0);
  EXPECT_TRUE(gptj.rotates);
  EXPECT_EQ(gptj.rotary_dim, 64);
  EXPECT_THAT(gptj.scaling.warnings, Contains(HasSubstr("has no model of the architecture gptj")));
  const ReadRopeConfig released = read_rope_config_bytes(
      R"({"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_layer": 28, "n_positions": 2048,
          "rotary": true, "rotary_dim": 64})",
      {});
  expect_refused(released, "gguf", "has a model of, but got \"gptj\"");
}

// llama.cpp multiplies cosines and sines by attn_factor for any type.
TEST(GgufGains, CountWithEveryType) {
  const Metadata factor = {{"rope.scaling.attn_factor", 1.2}};
  const RopeConfig plain = read("llama", factor).at(0);
  EXPECT_NEAR(gain(plain), 1.2, 1e-7);
  EXPECT_NEAR(frequency(plain, 63) / std::pow(1e6, -126.0 / 128), 1, 1e-12);
  const RopeConfig linear = read("llama", with(scaling("linear", 4), factor)).at(0);
  EXPECT_NEAR(gain(linear), 1.2, 1e-7);
  EXPECT_NEAR(frequency(linear, 63) * 4 / std::pow(1e6, -126.0 / 128), 1, 1e-12);
  const RopeConfig yarn = read("llama", with(scaling("yarn", 4, 32768), factor)).at(0);
  EXPECT_NEAR(gain(yarn), 1.2 * (0.1 * std::log(4) + 1), 1e-6);
}

// Olmo 3's code uses 1 in layers with a window; most other models use the factor.
TEST(GgufGains, ReachLayersWithAWindowAsTheCodeHasIt) {
  const Metadata keys = {{"attention.sliding_window", uint64_t{1024}},
                         {"rope.scaling.attn_factor", 1.2},
                         {"rope.scaling.type", std::string("linear")},
                         {"rope.scaling.factor", 8.0}};
  const auto olmo = read("olmo2", keys), gemma = read("gemma3", keys);
  ASSERT_EQ(olmo.size(), 2U);
  EXPECT_NEAR(gain(olmo[0]), 1.2, 1e-7);
  EXPECT_EQ(gain(olmo[1]), 1);
  ASSERT_EQ(gemma.size(), 2U);
  EXPECT_NEAR(gain(gemma[1]), 1.2, 1e-7);
  EXPECT_NEAR(frequency(gemma[1], 63) / std::pow(1e4, -126.0 / 128), 1, 1e-12);
}

// MiniCPM's converter writes no gain, and llama.cpp computes none from the lengths.
TEST(GgufGains, OfLongRopeAreTheFilesAlone) {
  const Tensors lists = {{"rope_factors_long.weight", std::vector<float>(64, 1.5F)},
                         {"rope_factors_short.weight", std::vector<float>(64, 1.0F)}};
  const RopeConfig minicpm = read("minicpm", scaling("longrope", 1, 32768), lists).at(0);
  EXPECT_EQ(gain(minicpm), 1);
  EXPECT_NEAR(frequency(minicpm, 63, 32769) * 1.5 / std::pow(1e6, -126.0 / 128), 1, 1e-12);
}

TEST(GgufGains, OfOneButForFloat32AreOne) {
  Metadata keys = with(scaling("yarn", 40, 4096), {{"rope.scaling.yarn_log_multiplier", 0.1F},
                                                   {"rope.dimension_count", uint64_t{64}}});
  EXPECT_EQ(gain(read("deepseek32", keys).at(0)), 1);
  keys =
      with(scaling("yarn", 40, 4096), {{"rope.scaling.attn_factor", 1 / (0.1 * std::log(40) + 1)}});
  EXPECT_EQ(gain(read("llama", keys).at(0)), 1);
}

// Kimi K2's factor without the key for mscale_all_dim, and GLM's, whose code reads no such key.
TEST(GgufScores, OfLatentAttentionGrowWithEveryScaling) {
  const double temperature = 0.1 * std::log(64) + 1;
  for (const char* arch : {"deepseek2", "glm-dsa"}) {
    const RopeConfig rope =
        read(arch, with(scaling("yarn", 64, 4096), {{"rope.dimension_count", uint64_t{64}}})).at(0);
    EXPECT_NEAR(rope.scaling.score_factor, std::pow(temperature, 2), 1e-12) << arch;
    EXPECT_NEAR(gain(rope), temperature, 1e-12) << arch;
    EXPECT_THAT(rope.scaling.warnings, Contains(HasSubstr("multiplies all scores by"))) << arch;
  }
  EXPECT_EQ(read("deepseek2", {}).at(0).scaling.score_factor, 1);
}

// The scaling applies to theta / divisor.
TEST(GgufDivisors, MultiplyTheScalingBesideThem) {
  const Tensors divisors = {{"rope_freqs.weight", halves(64, 8)}};
  const double slowest = std::pow(1e6, -126.0 / 128);
  const RopeConfig linear = read("llama", scaling("linear", 4), divisors).at(0);
  EXPECT_NEAR(frequency(linear, 63) * 32 / slowest, 1, 1e-12);
  EXPECT_NEAR(frequency(linear, 0) * 4, 1, 1e-12);
  EXPECT_THAT(linear.scaling.warnings, Contains(HasSubstr("llama.cpp applies both")));
  const RopeConfig yarn = read("llama", scaling("yarn", 4, 8192), divisors).at(0);
  EXPECT_NEAR(frequency(yarn, 63) * 32 / slowest, 1, 1e-12);
  EXPECT_NEAR(frequency(yarn, 0), 1, 1e-12);
  EXPECT_NEAR(gain(yarn), 0.1 * std::log(4) + 1, 1e-12);
}

// Gemma 4: position interpolation of the rotating pairs, in the layers without a window.
TEST(GgufDivisors, OfPRopeMayBeInterpolated) {
  std::vector<float> divisors(256, 1e30F);
  std::fill_n(divisors.begin(), 64, 1.0F);
  const auto gemma = read("gemma4",
                          with(scaling("linear", 8), {{"attention.key_length", uint64_t{512}},
                                                      {"attention.sliding_window", uint64_t{1024}},
                                                      {"rope.dimension_count", uint64_t{512}}}),
                          {{"rope_freqs.weight", divisors}});
  ASSERT_EQ(gemma.size(), 2U);
  EXPECT_EQ(gemma[0].scaling.type, "proportional");
  EXPECT_NEAR(frequency(gemma[0], 63) * 8 / std::pow(1e6, -126.0 / 512), 1, 1e-12);
  EXPECT_EQ(frequency(gemma[0], 64), 0);
  EXPECT_NEAR(frequency(gemma[1], 63) / std::pow(1e4, -126.0 / 512), 1, 1e-12);
}

TEST(GgufDivisors, ThatAreLostAreMissed) {
  const RopeConfig phi =
      read("phi3", {{"rope.scaling.original_context_length", uint64_t{4096}}}).at(0);
  EXPECT_THAT(phi.scaling.warnings, Contains(HasSubstr("rope_factors_long.weight")));
  EXPECT_EQ(trained_length(phi), 4096);
  EXPECT_THAT(read("phi3", {}).at(0).scaling.warnings, IsEmpty());
  EXPECT_THAT(read("llama", scaling("yarn", 1, 4096)).at(0).scaling.warnings,
              Each(Not(HasSubstr("rope_factors"))));
}

// llama.cpp takes context_length instead.
TEST(GgufLengths, ThatAreMissingAreTheContexts) {
  const Tensors lists = {{"rope_factors_long.weight", std::vector<float>(64, 1.5F)},
                         {"rope_factors_short.weight", std::vector<float>(64, 1.0F)}};
  const RopeConfig minicpm =
      read("minicpm", {{"rope.scaling.type", std::string("longrope")}}, lists).at(0);
  EXPECT_EQ(minicpm.scaling.original_length, 131072);
  EXPECT_NEAR(frequency(minicpm, 63, 131072) / std::pow(1e6, -126.0 / 128), 1, 1e-12);
  const RopeConfig yarn = read("llama", scaling("yarn", 4)).at(0);
  EXPECT_EQ(yarn.scaling.original_length, 131072);
  EXPECT_THAT(yarn.scaling.warnings, Contains(HasSubstr("llama.cpp takes context_length")));
  EXPECT_THAT(yarn.scaling.warnings, Each(Not(HasSubstr("Hugging Face"))));
  EXPECT_THAT(yarn.scaling.warnings, Each(Not(HasSubstr("max_position_embeddings"))));
}

// Grok: attention.output_scale times 1.277 squared.
TEST(GgufScores, AreScaledByTheKeyThatTheCodeReads) {
  Metadata keys = scaling("yarn", 16, 8192);
  EXPECT_NEAR(read("grok", keys).at(0).softmax_scale, 0.08838834764831845, 1e-15);
  keys["attention.output_scale"] = 0.08;
  const Explained numbers = explain(read("grok", keys).at(0), 0);
  EXPECT_NEAR(numbers.rotated_scale, 0.08 * std::pow(0.1 * std::log(16) + 1, 2), 1e-8);
  const RopeConfig llama = read("llama", {{"attention.scale", 0.0078125}}).at(0);
  EXPECT_EQ(llama.softmax_scale, 0);
  EXPECT_THAT(llama.scaling.warnings, Contains(HasSubstr("attention.scale is in the file, but")));
  EXPECT_EQ(read("granite", {{"attention.scale", 0.0078125}}).at(0).softmax_scale, 0.0078125);
}

TEST(GgufYarn, HasItsKeysWhereTheCodeReadsThem) {
  const Metadata keys = with(scaling("yarn", 16, 8192), {{"rope.scaling.yarn_beta_fast", 4.0}});
  const auto fast = [&](const std::string& arch, const Metadata& all) {
    const RopeConfig rope = read(arch, all).at(0);
    return std::get<Yarn>(std::get<Stretch>(rope.scaling.stretch)).beta_fast;
  };
  EXPECT_EQ(fast("mistral3", keys), 4);
  EXPECT_EQ(fast("grok", scaling("yarn", 16, 8192)), 8);
  EXPECT_EQ(fast("qwen3", keys), 32);
  EXPECT_THAT(read("qwen3", keys).at(0).scaling.warnings,
              Contains(HasSubstr("rope.scaling.yarn_beta_fast is 4.0 in the file, but")));
  const Metadata ramp = with(scaling("yarn", 64, 4096), {{"rope.scaling.yarn_ext_factor", 64.0}});
  EXPECT_THAT(read("laguna", ramp).at(0).scaling.warnings,
              Contains(HasSubstr("yarn_ext_factor is 64.0 in the file, but")));
  EXPECT_THAT([&] { read("grok", ramp); },
              ThrowsMessage<Error>(HasSubstr("expected 1, the whole ramp, but got 64.0")));
}

TEST(GgufLayers, OfDeepSeek4HaveTheWindowBesideOthers) {
  const auto ropes =
      read("deepseek4", with(scaling("yarn", 16, 65536),
                             {{"rope.freq_base", 5e4},
                              {"attention.sliding_window", uint64_t{128}},
                              {"attention.compress_rope_freq_base", 160000.0},
                              {"attention.compress_ratios",
                               GgufArray{.numbers = {0, 4, 0, 4, 0, 4, 0, 4}, .count = 8}}}));
  ASSERT_EQ(ropes.size(), 2U);
  EXPECT_EQ(ropes[0].window, 0);
  EXPECT_EQ(ropes[1].window, 128);
  EXPECT_EQ(ropes[1].base, 5e4);
  EXPECT_NEAR(frequency(ropes[0], 63) * 16 / std::pow(160000, -126.0 / 128), 1, 1e-12);
}

TEST(GgufLayers, ThatDoNotRotateAreWrittenOrRefused) {
  const std::string odd = R"("no_rope_layers": [1, 0, 1, 0, 1, 0, 1, 0])";
  const std::string fourth = R"("no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0])";
  const std::string smollm = R"("model_type": "smollm3", "rope_theta": 10000.0, )";
  expect_refused(config(smollm + odd), "gguf", "layer 1: expected no rotation, but got one");
  EXPECT_EQ(rotating(converted(config(smollm + fourth))), (std::vector<int64_t>{0, 1, 2, 4, 5, 6}));
  const ReadRopeConfig granite = converted(
      config(R"("model_type": "granite_swa", "rope_theta": 10000.0, "sliding_window": 4096,
                "layer_rope_theta": [10000.0, 0, 10000.0, 0, 10000.0, 0, 10000.0, 0])"));
  EXPECT_EQ(granite.configs.back().layer_numbers, (std::vector<int64_t>{1, 3, 5, 7}));
  EXPECT_FALSE(granite.configs.back().rotates);
  for (const char* type : {"cohere2", "cohere2_moe"}) {
    const ReadRopeConfig cohere =
        converted(config(std::string(R"("rope_theta": 10000.0, "sliding_window": 4096,
                                        "model_type": ")") +
                         type + "\""));
    EXPECT_EQ(rotating(cohere), (std::vector<int64_t>{0, 1, 2, 4, 5, 6})) << type;
    EXPECT_EQ(cohere.configs.at(0).window, 4096) << type;
  }
}

// EXAONE 4 with 64 layers has windows, with 30 layers it has none; SmallThinker has them by the
// key. Layers with a window take the file's base or the key's, depending on the model's code.
TEST(GgufLayers, WithAWindowHaveTheBaseThatTheCodeReads) {
  const Metadata keys = {{"attention.sliding_window", uint64_t{1024}},
                         {"rope.freq_base_swa", 5e4},
                         {"attention.sliding_window_pattern",
                          GgufArray{.numbers = {1, 1, 1, 0, 1, 1, 1, 0}, .count = 8}}};
  const std::pair<const char*, double> bases[] = {{"granite_swa", 1e6}, {"cohere2", 1e6},
                                                  {"olmo2", 1e6},       {"mellum", 1e6},
                                                  {"gemma3", 5e4},      {"mimo2", 5e4}};
  for (const auto& [arch, base] : bases) {
    for (const RopeConfig& group : read(arch, keys)) {
      if (!group.rotates || group.window == 0) continue;
      EXPECT_EQ(group.base, base) << arch;
    }
  }
}

TEST(GgufLayers, HaveAWindowAsTheCodeDecides) {
  const auto small = read("exaone4", {{"block_count", uint64_t{30}}});
  ASSERT_EQ(small.size(), 1U);
  EXPECT_TRUE(small[0].rotates);
  EXPECT_EQ(small[0].window, 0);
  EXPECT_EQ(read("exaone4", {{"block_count", uint64_t{64}}}).size(), 2U);
  EXPECT_EQ(read("smallthinker", {}).size(), 1U);
  const auto thinker = read("smallthinker", {{"attention.sliding_window", uint64_t{4096}}});
  ASSERT_EQ(thinker.size(), 2U);
  EXPECT_EQ(thinker[1].layer_numbers, (std::vector<int64_t>{0, 4}));
}

TEST(GgufWriter, NeedsTheAxesThatTheLoaderNeeds) {
  RopeConfig rope{.model_type = "qwen2_5_vl_text", .head_dim = 128, .rotary_dim = 128, .base = 1e6};
  expect_refused({"", "", {rope}}, "gguf", "mrope_section: expected the pairs of each axis");
  rope.scaling.sections = {16, 24, 24};
  expect_refused({"", "", {rope}}, "llama.cpp",
                 "(rope.dimension_sections, which --as gguf writes), and beside such a file the "
                 "flags are --rope-freq-base 1000000.0");
  EXPECT_THAT(read("qwen2vl", {}).at(0).scaling.warnings,
              Contains(HasSubstr("runs no file of qwen2vl")));
  const GgufArray sections{.numbers = {22, 22, 20, 0}, .count = 4};
  const RopeConfig ernie = read("ernie4_5-moe", {{"rope.dimension_sections", sections}}).at(0);
  EXPECT_THAT(ernie.scaling.sections, IsEmpty());
  EXPECT_THAT(ernie.scaling.warnings, Contains(HasSubstr("rotates all pairs of ernie4_5-moe by")));
}

// Devstral 2 as released.
TEST(Writers, SayNothingOfALawWithoutStrength) {
  const ReadRopeConfig devstral = config(
      R"("model_type": "ministral3", "rope_parameters": {"beta_fast": 4.0, "beta_slow": 1.0,
         "factor": 64.0, "mscale": 1.0, "mscale_all_dim": 0.0, "llama_4_scaling_beta": 0.0,
         "original_max_position_embeddings": 4096, "rope_theta": 1000000.0, "rope_type": "yarn"})");
  for (const char* to : {"gguf", "vllm", "hf4", "hf5", "llama.cpp"}) {
    EXPECT_NO_THROW(write_rope_config(devstral, to)) << to;
  }
  EXPECT_EQ(query_law_of(devstral.configs.at(0)), "");
  EXPECT_EQ(converted(devstral).configs.at(0).scaling.query_scale.law, QueryLaw::kNone);
}

TEST(GgufWriter, KnowsTheTypesOfModelsWithinOthers) {
  const std::pair<const char*, const char*> names[] = {{"glm4v_text", "glm4"},
                                                       {"glm4v_moe_text", "glm4moe"},
                                                       {"glm_ocr_text", "glm4"},
                                                       {"hunyuan_vl_text", "hunyuan_vl"},
                                                       {"minimax_m3_vl_text", "minimax-m3"},
                                                       {"muse_glimmer_text", "muse-glimmer"},
                                                       {"paddleocr_vl_text", "paddleocr"},
                                                       {"qwen3_omni_moe_text", "qwen3vlmoe"},
                                                       {"gemma4_unified_text", "gemma4"},
                                                       {"nemotron-nas", "deci"}};
  for (const auto& [type, name] : names) EXPECT_EQ(gguf_architecture(type), name) << type;
  // This model's qk_scale_factor is part of the weights of a norm.
  EXPECT_EQ(rotating(converted(config(R"("model_type": "muse_glimmer_text", "rope_theta": 1e4)"))),
            (std::vector<int64_t>{0, 1, 2, 4, 5, 6}));
}

}  // namespace
}  // namespace sextant::testing
