// Published configurations and their resolved configurations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/read_config.h"
#include "tests/rope_config/published_configs.h"

namespace sextant::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(Published, ResolveAsTheirOfficialCode) {
  // rotary.md 3.3 to 3.5; sizes, gains and factors of the official code.
  EXPECT_NEAR(rope("deepseek-v3").scaling.score_factor, 1.8739, 5e-5);
  EXPECT_EQ(rope("deepseek-v3").head_dim, 192);
  EXPECT_EQ(rope("deepseek-v3").rotary_dim, 64);
  EXPECT_EQ(spectrum_of(rope("deepseek-v3"), 1).gain, 1);
  EXPECT_NEAR(spectrum_of(rope("gpt-oss"), 1).gain, 0.1 * std::log(32) + 1, 1e-15);
  EXPECT_NEAR(spectrum_of(rope("phi-3-128k"), 1).gain, 1.19024, 5e-6);
  EXPECT_NEAR(spectrum_of(rope("phi-3-128k"), 4097).gain, 1.19024, 5e-6);
  EXPECT_NEAR(spectrum_of(rope("qwen2.5-7b-yarn"), 1).gain, 0.1 * std::log(4) + 1, 1e-15);
  EXPECT_EQ(rope("gpt-neox-partial").rotary_dim, 24);
  EXPECT_EQ(rope("ministral-3").scaling.query_scale.law, QueryLaw::kMinistral);
  EXPECT_EQ(rope("ministral-3").scaling.query_scale.length, 16384);
  EXPECT_EQ(rope("ministral-3").scaling.score_factor, 1) << "DeepSeek's models only";
  EXPECT_EQ(rope("qwen-1").scaling.query_scale.law, QueryLaw::kLogn);
}

// Values from model cards and papers; a whole file has the same meaning as its block of fields.
TEST(Published, WholeFilesResolve) {
  const auto slowest = [](const char* name) {
    const Spectrum spectrum = spectrum_of(rope(name), 1);
    return static_cast<double>(spectrum.pairs.back().frequency);
  };
  const auto plain = [](double base, double dim) { return std::pow(base, 2 / dim - 1); };
  EXPECT_NEAR(slowest("llama-2-7b") / plain(1e4, 128), 1, 1e-14);
  EXPECT_NEAR(slowest("llama-3.2-1b") * 32 / plain(5e5, 64), 1, 1e-14);
  EXPECT_NEAR(slowest("mistral-7b") / plain(1e4, 128), 1, 1e-14);
  EXPECT_NEAR(slowest("qwen3-8b") / plain(1e6, 128), 1, 1e-14);
  EXPECT_NEAR(slowest("yarn-llama-2-7b-64k") * 16 / plain(1e4, 128), 1, 1e-14);
  EXPECT_NEAR(spectrum_of(rope("yarn-llama-2-7b-64k"), 1).gain, 1.27726, 5e-6);
  EXPECT_NEAR(slowest("deepseek-v2-lite") * 40 / plain(1e4, 64), 1, 1e-14);
  EXPECT_NEAR(rope("deepseek-v2-lite").scaling.score_factor, 1.5896, 5e-5);
  EXPECT_EQ(spectrum_of(rope("deepseek-v2-lite"), 1).gain, 1);
  EXPECT_EQ(rope("glm-4-9b").rotary_dim, 64);
  EXPECT_NEAR(slowest("glm-4-9b") / plain(1e4, 64), 1, 1e-14);
  EXPECT_EQ(rope("falcon-7b").rotary_dim, 64);
  EXPECT_EQ(explain(rope("llama-3.2-1b"), 0).trained, 8192);
  EXPECT_EQ(explain(rope("yarn-llama-2-7b-64k"), 0).target, 65536);
}

TEST(Published, FrequenciesAreThoseOfTheFormulas) {
  const Spectrum llama = spectrum_of(rope("llama-3.1-8b"), 1);
  EXPECT_EQ(frequency(llama, 0), 1);
  EXPECT_NEAR(frequency(llama, 63) * 8 / std::pow(5e5, -126.0 / 128), 1, 1e-14);
  const Spectrum linear = spectrum_of(rope("gemma-3"), 1);
  EXPECT_EQ(frequency(linear, 0), 0.125);
  EXPECT_EQ(frequency(spectrum_of(rope("gemma-3", 1), 1), 0), 1);
  EXPECT_EQ(rope("gemma-3", 1).base, 10000);
  const Spectrum proportional = spectrum_of(rope("gemma-4-12b"), 1);
  EXPECT_EQ(proportional.pairs.size(), 256u);
  EXPECT_NE(frequency(proportional, 63), 0);
  EXPECT_EQ(frequency(proportional, 64), 0);
  const Spectrum phi = spectrum_of(rope("phi-3-128k"), 4096);
  EXPECT_NEAR(frequency(phi, 3), std::pow(1e4, -0.75) / 1.25, 1e-18);
  EXPECT_NEAR(frequency(spectrum_of(rope("phi-3-128k"), 4097), 3), std::pow(1e4, -0.75) / 64.75,
              1e-18);
  // Dynamic: the plain base up to 32768, a larger one beyond.
  const RopeConfig internlm = rope("internlm2");
  EXPECT_EQ(frequency(spectrum_of(internlm, 32768), 9), std::pow(1e6, -9.0 / 64));
  const double base = 1e6 * std::pow(2 * 65536.0 / 32768 - 1, 128.0 / 126);
  EXPECT_NEAR(frequency(spectrum_of(internlm, 65536), 9) / std::pow(base, -9.0 / 64), 1, 1e-14);
}

// Layers with a window rotate differently, whether or not the file has fields for each type.
TEST(Published, LayersWithAWindowAreAConfigOfTheirOwn) {
  const RopeConfig full = rope("gemma-4-12b"), local = rope("gemma-4-12b", 1);
  EXPECT_EQ(full.layers, "full_attention");
  EXPECT_EQ(full.head_dim, 512);
  EXPECT_EQ(full.window, 0);
  EXPECT_EQ(local.head_dim, 256);
  EXPECT_EQ(local.rotary_dim, 256);
  EXPECT_EQ(local.window, 1024);
  EXPECT_EQ(rope("olmo-3-7b").scaling.type, "yarn");
  EXPECT_EQ(rope("olmo-3-7b", 1).scaling.type, "default");
  EXPECT_EQ(rope("olmo-3-7b", 1).base, 500000);
  // The released Gemma 3 12B leaves its bases and the size of its heads to the code.
  const std::string released = R"({"model_type": "gemma3", "text_config": {
      "model_type": "gemma3_text", "hidden_size": 3840, "num_attention_heads": 16,
      "num_key_value_heads": 8, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
      "sliding_window": 1024}})";
  const auto both = read_rope_config_bytes(released, {}).configs;
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].head_dim, 256);
  EXPECT_EQ(both[0].base, 1e6);
  EXPECT_EQ(frequency(spectrum_of(both[0], 1), 0), 0.125);
  EXPECT_EQ(frequency(spectrum_of(both[1], 1), 0), 1);
  EXPECT_EQ(both[1].base, 10000);
  EXPECT_THAT(both[0].notes,
              Contains(HasSubstr("from gemma3_text's code (transformers 5.24.0, "
                                 "models/gemma3/modeling_gemma3.py): head_dim 256")));
  const auto other = read_rope_config_bytes(released, {.base = 5e5, .local_base = 2e4}).configs;
  EXPECT_EQ(other[0].base, 5e5);
  EXPECT_EQ(other[1].base, 2e4);
}

TEST(Published, SayWhatBoundsDistances) {
  EXPECT_EQ(rope("mistral-7b").window, 4096);
  EXPECT_EQ(rope("mistral-7b").bounded_in, "");
  EXPECT_EQ(rope("gpt-oss").layers, "full_attention");
  EXPECT_EQ(rope("gpt-oss").window, 0);
  EXPECT_EQ(rope("gpt-oss", 1).layers, "sliding_attention");
  EXPECT_EQ(rope("gpt-oss", 1).window, 128);
  EXPECT_EQ(rope("qwen2-vl").window, 0) << "use_sliding_window is false";
  EXPECT_EQ(rope("llama-4-scout").chunk, 8192);
  EXPECT_FALSE(rope("llama-4-scout", 1).rotates);
  EXPECT_EQ(rope("llama-4-scout", 1).chunk, 0);
  EXPECT_EQ(rope("llama-4-scout", 1).scaling.query_scale.law, QueryLaw::kLlama4);
  const RopeConfig million = rope("qwen2.5-7b-1m");
  EXPECT_EQ(million.dual_chunk, 262144);
  EXPECT_EQ(trained_length(million), 262144);
  EXPECT_THAT(million.scaling.warnings, Contains(HasSubstr("dual chunk attention")));
}

TEST(Published, AxesAreReadUnderEveryType) {
  EXPECT_EQ(rope("qwen2-vl").scaling.sections, (std::vector<int64_t>{16, 24, 24}));
  EXPECT_EQ(rope("qwen3-vl-8b").scaling.sections, (std::vector<int64_t>{24, 20, 20}));
  EXPECT_TRUE(rope("qwen3-vl-8b").scaling.interleaved_sections);
}

// HunYuan's code: the base times alpha^(R / (R - 2)) for any length.
TEST(Published, AlphaIsABaseAndNoLength) {
  const RopeConfig hunyuan = rope("hunyuan-large");
  EXPECT_NEAR(hunyuan.base / (1e4 * std::pow(1000, 80.0 / 78)), 1, 1e-14);
  EXPECT_FALSE(hunyuan.scaling.is_dynamic());
  EXPECT_EQ(explain(hunyuan, 0).target, 131072);
}

// Kimi: both ends of the ramp are at one rotation; pair 19 is kept and pair 20 interpolated.
TEST(Published, EqualBetasAreAStep) {
  const RopeConfig kimi = rope("yarn-beta1-beta1");
  const Spectrum spectrum = spectrum_of(kimi, 1);
  EXPECT_NEAR(frequency(spectrum, 19) / std::pow(5e4, -19.0 / 32), 1, 1e-14);
  EXPECT_NEAR(frequency(spectrum, 20) * 32 / std::pow(5e4, -20.0 / 32), 1, 1e-14);
}

}  // namespace
}  // namespace sextant::testing
