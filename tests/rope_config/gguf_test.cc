// The meaning of GGUF files by architecture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/base/error.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/write_config.h"
#include "tests/rope_config/gguf_files.h"

namespace sextant::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A model's folder has them, too: encoders of images, adapters, importance matrices.
TEST(Gguf, FilesBesideAModelAreRefusedByName) {
  const auto refused = [](const Metadata& keys, const std::string& words) {
    EXPECT_THAT(
        [&] { read_rope_config_bytes(gguf_bytes(keys, {}), {.base = 1e4, .head_dim = 64}); },
        ThrowsMessage<Error>(HasSubstr(words)))
        << words;
  };
  refused({{"general.architecture", "clip"}, {"clip.has_vision_encoder", true}}, "(mmproj)");
  refused({{"general.architecture", "clip"}, {"general.type", "mmproj"}}, "(mmproj)");
  refused({{"general.architecture", "llama"}, {"general.type", "adapter"}}, "a LoRA adapter");
  refused({{"general.type", "imatrix"}}, "an importance matrix");
  EXPECT_EQ(read_gguf("llama", {}).dialect, "GGUF");
}

// Mistral's files contain mscale_all_dim itself, deepseek2's a tenth of it.
TEST(GgufArchitectures, MeanTheirOwnByTheLogMultiplier) {
  Metadata keys = scaling("yarn", 48, 8192);
  keys["rope.scaling.yarn_log_multiplier"] = 1.0;
  const RopeConfig mistral = read_gguf("mistral3", keys).configs.at(0);
  EXPECT_EQ(spectrum_of(mistral, 1).gain, 1);
  EXPECT_EQ(mistral.scaling.score_factor, 1);
  EXPECT_NEAR(frequency(mistral, 63) * 48 / std::pow(1e6, -126.0 / 128), 1, 1e-12);
  keys["rope.scaling.yarn_log_multiplier"] = 0.0707;
  keys["rope.dimension_count"] = uint64_t{64};
  const RopeConfig deepseek = read_gguf("deepseek2", keys).configs.at(0);
  EXPECT_EQ(spectrum_of(deepseek, 1).gain, 1);
  EXPECT_NEAR(deepseek.scaling.score_factor, std::pow(0.0707 * std::log(48) + 1, 2), 1e-6);
  const RopeConfig llama = read_gguf("llama", keys).configs.at(0);
  EXPECT_THAT(llama.scaling.warnings, Contains(HasSubstr("yarn_log_multiplier means different")));
}

TEST(GgufArchitectures, LawForQueriesIsRead) {
  Metadata keys = scaling("yarn", 48, 8192);
  keys["attention.temperature_scale"] = 0.1F;
  const RopeConfig mistral = read_gguf("mistral3", keys).configs.at(0);
  EXPECT_EQ(mistral.scaling.query_scale.law, QueryLaw::kMinistral);
  EXPECT_EQ(mistral.scaling.query_scale.length, 8192);
  EXPECT_NEAR(mistral.scaling.query_scale.strength, 0.1, 1e-8);
  const RopeConfig llama = read_gguf("llama", keys).configs.at(0);
  EXPECT_EQ(llama.scaling.query_scale.law, QueryLaw::kNone);
  EXPECT_THAT(llama.scaling.warnings, Contains(HasSubstr("temperature_scale is in the file")));
}

TEST(GgufArchitectures, UnknownKeysAreNamedTogether) {
  EXPECT_THAT(
      [] {
        read_gguf("llama", {{"attention.temperature_slope", 1.0}, {"rope.speed", 2.0}});
      },
      ThrowsMessage<Error>(HasSubstr(
          R"("llama.attention.temperature_slope", "llama.rope.speed": expected no key)")));
  EXPECT_THAT(read_gguf("frob", {}).configs.at(0).scaling.warnings,
              Contains(HasSubstr("not audited: frob")));
}

TEST(GgufArchitectures, KnowWhetherAndWhereTheyRotate) {
  const RopeConfig nemotron = read_gguf("nemotron_h", {}).configs.at(0);
  EXPECT_FALSE(nemotron.rotates);
  EXPECT_EQ(nemotron.instead, "none");
  EXPECT_EQ(read_gguf("bloom", {}).configs.at(0).instead, "alibi");
  EXPECT_FALSE(
      read_gguf("granitehybrid", {{"rope.scaling.finetuned", false}}).configs.at(0).rotates);
  EXPECT_TRUE(read_gguf("granitehybrid", {}).configs.at(0).rotates);
  const auto smol = read_gguf("smollm3", {{"block_count", uint64_t{8}}}).configs;
  ASSERT_EQ(smol.size(), 2U);
  EXPECT_EQ(smol[0].layer_numbers, (std::vector<int64_t>{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(smol[1].layer_numbers, (std::vector<int64_t>{3, 7}));
  EXPECT_FALSE(smol[1].rotates);
  const auto cohere = read_gguf("cohere2", {{"block_count", uint64_t{8}},
                                            {"attention.sliding_window", uint64_t{4096}}})
                          .configs;
  ASSERT_EQ(cohere.size(), 2U);
  EXPECT_TRUE(cohere[0].rotates);
  EXPECT_EQ(cohere[0].window, 4096);
  EXPECT_EQ(cohere[1].layer_numbers, (std::vector<int64_t>{3, 7}));
  EXPECT_FALSE(cohere[1].rotates);
  const auto scout = read_gguf("llama4", {{"block_count", uint64_t{8}}}).configs;
  ASSERT_EQ(scout.size(), 2U);
  EXPECT_EQ(scout[0].chunk, 8192);
  EXPECT_FALSE(scout[1].rotates);
  EXPECT_EQ(scout[1].scaling.query_scale.law, QueryLaw::kLlama4);
}

TEST(GgufArchitectures, SayHowPairsAreFormed) {
  EXPECT_EQ(read_gguf("llama", {}).configs.at(0).pairing, Pairing::kInterleaved);
  EXPECT_EQ(read_gguf("qwen2", {}).configs.at(0).pairing, Pairing::kHalfSplit);
  EXPECT_EQ(read_gguf("frob", {}).configs.at(0).pairing, std::nullopt);
}

// Gemma 4: 64 of 256 pairs rotate in layers without a window.
TEST(GgufArchitectures, HugeDivisorsArePairsThatDoNotRotate) {
  std::vector<float> divisors(256, 1e30F);
  std::fill_n(divisors.begin(), 64, 1.0F);
  const auto gemma = read_gguf("gemma4",
                               {{"attention.key_length", uint64_t{512}},
                                {"attention.key_length_swa", uint64_t{256}},
                                {"attention.sliding_window", uint64_t{1024}},
                                {"rope.freq_base_swa", 1e4},
                                {"rope.dimension_count", uint64_t{512}},
                                {"rope.dimension_count_swa", uint64_t{256}}},
                               {{"rope_freqs.weight", divisors}})
                         .configs;
  ASSERT_EQ(gemma.size(), 2U);
  EXPECT_EQ(gemma[0].scaling.type, "proportional");
  EXPECT_NE(frequency(gemma[0], 63), 0);
  EXPECT_EQ(frequency(gemma[0], 64), 0);
  EXPECT_EQ(gemma[0].softmax_scale, 1);
  EXPECT_EQ(gemma[1].scaling.type, "default");
  EXPECT_EQ(gemma[1].base, 1e4);
  EXPECT_EQ(gemma[1].rotary_dim, 256);
}

TEST(GgufArchitectures, DivisorsAreLlama3sOnlyIfTheyLookSo) {
  std::vector<float> llama(64, 8.0F), odd(64, 1.0F);
  std::fill_n(llama.begin(), 30, 1.0F);
  for (size_t n = 0; n < odd.size(); ++n) odd[n] = n % 2 == 0 ? 1.5F : 2.5F;
  const auto type = [](const std::vector<float>& divisors) {
    return read_gguf("llama", {}, {{"rope_freqs.weight", divisors}}).configs.at(0).scaling.type;
  };
  EXPECT_EQ(type(llama), "llama3");
  EXPECT_EQ(type(odd), "divisors by pair");
}

// The base is multiplied by alpha^(R / (R - 2)).
TEST(GgufArchitectures, AlphaIsAnotherBase) {
  const RopeConfig hunyuan =
      read_gguf("hunyuan-dense", {{"rope.freq_base", 1e4}, {"rope.scaling.alpha", 1000.0}})
          .configs.at(0);
  EXPECT_NEAR(hunyuan.base / (1e4 * std::pow(1000, 128.0 / 126)), 1, 1e-14);
}

// DeepSeek V4 has two bases, and YaRN without a gain in layers with compressed keys.
TEST(GgufArchitectures, CompressedLayersHaveTheirBase) {
  Metadata keys = scaling("yarn", 16, 65536);
  keys["rope.freq_base"] = 1e4;
  keys["attention.compress_rope_freq_base"] = 160000.0;
  keys["attention.compress_ratios"] = GgufArray{.numbers = {0, 4, 128}, .count = 3};
  keys["rope.dimension_count"] = uint64_t{64};
  const auto ropes = read_gguf("deepseek4", keys).configs;
  ASSERT_EQ(ropes.size(), 2U);
  EXPECT_EQ(ropes[0].layer_numbers, (std::vector<int64_t>{1, 2}));
  EXPECT_NEAR(frequency(ropes[0], 31) * 16 / std::pow(160000, -62.0 / 64), 1, 1e-12);
  EXPECT_EQ(spectrum_of(ropes[0], 1).gain, 1);
  EXPECT_NEAR(frequency(ropes[1], 31) / std::pow(1e4, -62.0 / 64), 1, 1e-12);
}

TEST(GgufArchitectures, LargeGemmasScaleByTheWidth) {
  const Metadata keys = {{"attention.sliding_window", uint64_t{4096}},
                         {"embedding_length", uint64_t{4608}},
                         {"attention.head_count", uint64_t{32}},
                         {"block_count", uint64_t{46}}};
  EXPECT_NEAR(read_gguf("gemma2", keys).configs.at(0).softmax_scale, 1 / std::sqrt(144.0), 1e-15);
}

TEST(GgufArchitectures, TheConvertersNamesOf2026AreKnown) {
  const std::pair<const char*, const char*> names[] = {{"bailing_moe_v2", "bailingmoe2"},
                                                       {"lfm2_moe", "lfm2moe"},
                                                       {"exaone_moe", "exaone-moe"},
                                                       {"glm_moe_dsa", "glm-dsa"},
                                                       {"granitemoehybrid", "granitehybrid"},
                                                       {"nemotron_h", "nemotron_h"},
                                                       {"glm4_moe_lite", "deepseek2"},
                                                       {"mimo_v2_flash", "mimo2"},
                                                       {"step3p5", "step35"},
                                                       {"deepseek_v4", "deepseek4"}};
  for (const auto& [type, name] : names) EXPECT_EQ(gguf_architecture(type), name) << type;
  EXPECT_NE(find_architecture("llama"), nullptr);
  EXPECT_EQ(find_architecture("frob"), nullptr);
}

TEST(GgufFiles, AreReadAsLlamaCppMeansThem) {
  const auto of = [](const std::map<std::string, GgufValue>& metadata, const Overrides& overrides) {
    return read_gguf_config({.metadata = metadata, .tensors = {}, .vectors = {}}, overrides);
  };
  const auto whole = [](uint64_t n) { return GgufValue(n); };
  // With latent attention, key_length is the size of keys in the cache.
  const RopeConfig latent = of({{"general.architecture", std::string("deepseek2")},
                                {"deepseek2.attention.key_length", whole(576)},
                                {"deepseek2.attention.key_length_mla", whole(192)},
                                {"deepseek2.attention.kv_lora_rank", whole(512)},
                                {"deepseek2.rope.dimension_count", whole(64)},
                                {"deepseek2.rope.freq_base", 10000.0}},
                               {})
                                .at(0);
  EXPECT_EQ(latent.head_dim, 192);
  EXPECT_EQ(latent.rotary_dim, 64);
  EXPECT_TRUE(latent.latent);
  // Gemma 3: the other base is in llama.cpp's code.
  std::map<std::string, GgufValue> gemma = {{"general.architecture", std::string("gemma3")},
                                            {"gemma3.attention.key_length", whole(256)},
                                            {"gemma3.attention.sliding_window", whole(1024)},
                                            {"gemma3.rope.scaling.type", std::string("linear")},
                                            {"gemma3.rope.scaling.factor", 8.0},
                                            {"gemma3.rope.freq_base", 1000000.0}};
  const auto by_code = of(gemma, {});
  ASSERT_EQ(by_code.size(), 2U);
  EXPECT_EQ(by_code[1].base, 10000);
  EXPECT_THAT(by_code[1].notes, Contains(HasSubstr("from the code: llama.cpp")));
  const auto both = of(gemma, {.local_base = 1e4});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].base, 10000);
  EXPECT_EQ(both[1].window, 1024);
  EXPECT_EQ(both[1].scaling.type, "default");
  EXPECT_EQ(both[0].scaling.type, "linear");
  gemma["gemma3.rope.dimension_count"] = whole(512);
  EXPECT_THAT([&] { of(gemma, {.local_base = 1e4}); },
              ThrowsMessage<Error>(
                  HasSubstr("gemma3.rope.dimension_count: expected at most the 256 channels")));
  const auto sections = [&](std::vector<double> numbers) {
    const uint64_t count = numbers.size();
    return of({{"general.architecture", std::string("qwen2vl")},
               {"qwen2vl.attention.key_length", whole(128)},
               {"qwen2vl.rope.freq_base", 1000000.0},
               {"qwen2vl.rope.dimension_sections", GgufArray{std::move(numbers), count}}},
              {})
        .at(0)
        .scaling.sections;
  };
  EXPECT_EQ(sections({16, 24, 24, 0}), (std::vector<int64_t>{16, 24, 24}));
  EXPECT_THAT(
      [&] {
        sections({16, 24, 25, 0});
      },
      ThrowsMessage<Error>(HasSubstr("rope.dimension_sections: expected pairs")));
}

}  // namespace
}  // namespace sextant::testing
