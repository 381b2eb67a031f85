// Facts that only a model's code contains; expected values follow from the published formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/position/stretch/yarn.h"
#include "sextant/rope_config/explain.h"
#include "tests/rope_config/config_files.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The number of rotating channels, base and pairing of a configuration that contains none of them.
struct OfCode {
  json config;
  int64_t rotary_dim;
  double base;
  Pairing pairing;
};

TEST(ModelCode, SaysThePartThatAFileLeavesOut) {
  const OfCode all[] = {
      {{{"model_type", "glm"}, {"head_dim", 128}}, 64, 1e4, Pairing::kInterleaved},
      {{{"model_type", "glm4_moe"}, {"head_dim", 128}, {"rope_theta", 1e6}},
       64,
       1e6,
       Pairing::kHalfSplit},
      {{{"model_type", "stablelm"}, {"hidden_size", 2560}, {"num_attention_heads", 32}},
       20,
       1e4,
       Pairing::kHalfSplit},
      {{{"model_type", "gpt_neox"}, {"hidden_size", 6144}, {"num_attention_heads", 64}},
       24,
       1e4,
       Pairing::kHalfSplit},
      {{{"model_type", "qwen3_next"}, {"head_dim", 256}, {"rope_theta", 1e7}},
       64,
       1e7,
       Pairing::kHalfSplit},
      {{{"model_type", "nemotron"}, {"hidden_size", 6144}, {"num_attention_heads", 48}},
       64,
       1e4,
       Pairing::kHalfSplit},
      {{{"model_type", "phi"}, {"hidden_size", 2560}, {"num_attention_heads", 32}},
       40,
       1e4,
       Pairing::kHalfSplit},
      {{{"model_type", "llama"}, {"hidden_size", 4096}, {"num_attention_heads", 32}},
       128,
       1e4,
       Pairing::kHalfSplit},
  };
  for (const auto& [config, rotary_dim, base, pairing] : all) {
    SCOPED_TRACE(config.dump());
    const RopeConfig rope = read(config).at(0);
    EXPECT_EQ(rope.rotary_dim, rotary_dim);
    EXPECT_EQ(rope.base, base);
    EXPECT_EQ(rope.pairing, pairing);
    EXPECT_NEAR(frequency(rope, 1) / std::pow(base, -2.0 / static_cast<double>(rotary_dim)), 1,
                1e-14);
    EXPECT_THAT(rope.notes, Contains(HasSubstr("'s code (transformers 5.24.0, models/")));
  }
}

TEST(ModelCode, SaysTheSizeOfHeads) {
  const json wide = {{"hidden_size", 6144}, {"num_attention_heads", 16}, {"rope_theta", 1e4}};
  for (const auto& [type, size] : {std::pair{"gpt_oss", 64},
                                   {"llama4_text", 128},
                                   {"glm4", 128},
                                   {"ernie4_5", 128},
                                   {"seed_oss", 128},
                                   {"minimax_m2", 128},
                                   {"helium", 128},
                                   {"vaultgemma", 256},
                                   {"qwen3_next", 256}}) {
    EXPECT_EQ(read(with(wide, {{"model_type", type}})).at(0).head_dim, size) << type;
  }
  EXPECT_EQ(read(with(wide, {{"model_type", "mistral"}})).at(0).head_dim, 384);
  EXPECT_EQ(read({{"model_type", "jetmoe"},
                  {"kv_channels", 128},
                  {"hidden_size", 2048},
                  {"num_attention_heads", 32},
                  {"rope_theta", 1e4}})
                .at(0)
                .head_dim,
            128)
      << "kv_channels is its size of heads";
}

// A base in the file does not mean that the model rotates.
TEST(ModelCode, DecidesWhetherAModelRotates) {
  const json sizes = {{"hidden_size", 4096}, {"num_attention_heads", 32}, {"rope_theta", 1e4}};
  for (const json& more :
       {json{{"model_type", "granitemoehybrid"}},
        json{{"model_type", "granitemoehybrid"}, {"position_embedding_type", "nope"}},
        json{{"model_type", "esm"}}, json{{"model_type", "zamba2"}, {"use_mem_rope", false}},
        json{{"model_type", "kimi_linear"},
             {"mla_use_nope", true},
             {"qk_rope_head_dim", 64},
             {"qk_nope_head_dim", 128}},
        json{{"model_type", "nemotron_h"}}, json{{"model_type", "inkling_mm_model"}},
        json{{"model_type", "inkling2_text"}}}) {
    SCOPED_TRACE(more.dump());
    const auto ropes = read(with(sizes, more));
    ASSERT_FALSE(ropes.empty());
    for (const RopeConfig& rope : ropes) {
      EXPECT_FALSE(rope.rotates);
      EXPECT_TRUE(explain(rope, 0).pairs.empty());
    }
  }
  EXPECT_TRUE(read(with(sizes, {{"model_type", "granitemoehybrid"},
                                {"layer_types", {"mamba", "attention"}},
                                {"position_embedding_type", "rope"}}))
                  .at(0)
                  .rotates);
  EXPECT_TRUE(read(with(sizes, {{"model_type", "esm"}, {"position_embedding_type", "rotary"}}))
                  .at(0)
                  .rotates);
}

TEST(ModelCode, NamesWhatModelsHaveInstead) {
  for (const auto& [config, instead] :
       {std::pair<json, const char*>{{{"model_type", "bloom"}, {"n_head", 32}}, "alibi"},
        {{{"model_type", "falcon"}, {"alibi", true}}, "alibi"},
        {{{"model_type", "mpt"}, {"attn_config", {{"alibi", true}}}}, "alibi"},
        {{{"model_type", "t5"}, {"d_kv", 64}}, "t5"},
        {{{"model_type", "gpt2"}}, "learned"},
        {{{"model_type", "deberta-v2"}}, "deberta"}}) {
    EXPECT_EQ(read(config).at(0).instead, instead) << config;
  }
  EXPECT_THAT(read({{"model_type", "vit"}}, {.base = 1e4}).at(0).scaling.warnings,
              Contains(HasSubstr("--base has no effect")));
}

// Layers without rotation, by rules in the model's code.
TEST(ModelCode, SaysWhichLayersRotate) {
  const auto still = [](const json& config) {
    std::vector<int64_t> layers;
    for (const RopeConfig& rope : read(config)) {
      if (!rope.rotates) layers = rope.layer_numbers;
    }
    return layers;
  };
  const json sizes = {{"head_dim", 128},     {"num_hidden_layers", 8},    {"rope_theta", 1e4},
                      {"hidden_size", 4096}, {"num_attention_heads", 32}, {"sliding_window", 512}};
  const auto of = [&](const char* type) { return with(sizes, {{"model_type", type}}); };
  EXPECT_THAT(still(of("cohere2")), ElementsAre(3, 7));
  EXPECT_THAT(still(of("afmoe")), ElementsAre(3, 7));
  EXPECT_THAT(still(of("flint")), ElementsAre(0, 1, 5, 7));
  EXPECT_THAT(still(of("kolibri1")), ElementsAre(4));
  EXPECT_THAT(still(of("beam")), ElementsAre(5, 7));
  EXPECT_THAT(still(of("smollm3")), ElementsAre(3, 7));
  EXPECT_THAT(still(of("exaone4")), ElementsAre(3, 7));
  EXPECT_THAT(still(with(of("exaone4"), {{"sliding_window", nullptr}})), IsEmpty());
  EXPECT_THAT(still(with(of("muse_spark_text"), {{"head_dim", 64}})), ElementsAre(3, 7));
  EXPECT_THAT(
      still(with(of("granite_swa"), {{"layer_rope_theta", {1e4, 1e4, 0, 1e4, 5e5, 1e4, 0, 1e4}}})),
      ElementsAre(2, 6));
  EXPECT_THAT(still({{"model_type", "mistral_large4_text"}, {"num_hidden_layers", 8}}),
              ElementsAre(3, 7));
}

TEST(ModelCode, BasesByLayerAreGroups) {
  const auto ropes = read({{"model_type", "granite_swa"},
                           {"head_dim", 128},
                           {"num_hidden_layers", 4},
                           {"hidden_size", 2560},
                           {"num_attention_heads", 20},
                           {"sliding_window", 128},
                           {"layer_rope_theta", {5e5, 1e4, 0, 1e4}}});
  ASSERT_EQ(ropes.size(), 3U);
  EXPECT_EQ(ropes[0].base, 5e5);
  EXPECT_THAT(ropes[0].layer_numbers, ElementsAre(0));
  EXPECT_EQ(ropes[1].base, 1e4);
  EXPECT_EQ(ropes[1].window, 128);
  EXPECT_THAT(ropes[1].layer_numbers, ElementsAre(1, 3));
  EXPECT_FALSE(ropes[2].rotates);
}

TEST(ModelCode, ScalesTheSoftmax) {
  const auto scale = [](const json& config) {
    return explain(read(config).at(0), 0).rotated_scale;
  };
  // Values from the released files of Gemma 2 27B, Gemma 3 27B and Granite 3.3 8B.
  EXPECT_NEAR(scale({{"model_type", "gemma2"},
                     {"head_dim", 128},
                     {"query_pre_attn_scalar", 144},
                     {"hidden_size", 4608},
                     {"num_attention_heads", 32}}),
              1 / 12.0, 1e-15);
  EXPECT_NEAR(scale({{"model_type", "gemma3_text"},
                     {"head_dim", 128},
                     {"query_pre_attn_scalar", 168},
                     {"hidden_size", 5376},
                     {"num_attention_heads", 32}}),
              std::pow(168, -0.5), 1e-15);
  EXPECT_NEAR(scale({{"model_type", "granite"},
                     {"hidden_size", 4096},
                     {"num_attention_heads", 32},
                     {"attention_multiplier", 0.0078125}}),
              0.0078125, 1e-18);
  EXPECT_EQ(scale({{"model_type", "gemma3n_text"}}), 1);
  EXPECT_EQ(scale({{"model_type", "gemma4_text"}}), 1);
  EXPECT_NEAR(scale({{"model_type", "llama"}, {"head_dim", 128}}), std::pow(128, -0.5), 1e-16);
}

// A partial factor is not applied to a size that is already partial.
TEST(ModelCode, LatentHeadsSayTheirChannels) {
  const json yarn = {{"rope_type", "yarn"},
                     {"rope_theta", 1e4},
                     {"factor", 128},
                     {"original_max_position_embeddings", 8192},
                     {"mscale", 1},
                     {"mscale_all_dim", 1},
                     {"llama_4_scaling_beta", 0.1},
                     {"partial_rotary_factor", 0.5},
                     {"max_position_embeddings", 1048576}};
  const RopeConfig rope = read({{"model_type", "mistral4"},
                                {"qk_rope_head_dim", 64},
                                {"qk_nope_head_dim", 64},
                                {"head_dim", 128},
                                {"rope_interleave", true},
                                {"rope_parameters", yarn}})
                              .at(0);
  EXPECT_EQ(rope.rotary_dim, 64);
  EXPECT_NEAR(frequency(rope, 31) * 128 / std::pow(1e4, -62.0 / 64), 1, 1e-14);
  EXPECT_EQ(rope.scaling.query_scale.law, QueryLaw::kMinistral);
  EXPECT_EQ(rope.pairing, Pairing::kInterleaved);
  // DeepSeek V4 as released: the factor is relative to the whole head.
  const auto v4 =
      read({{"model_type", "deepseek_v4"},
            {"head_dim", 512},
            {"qk_rope_head_dim", 64},
            {"sliding_window", 128},
            {"rope_theta", 1e4},
            {"compress_rope_theta", 160000},
            {"compress_ratios", {0, 0, 4, 128}},
            {"rope_scaling",
             {{"type", "yarn"}, {"factor", 16}, {"original_max_position_embeddings", 65536}}}});
  for (const RopeConfig& group : v4) {
    EXPECT_EQ(group.rotary_dim, 64);
    EXPECT_EQ(group.head_dim, 512);
    EXPECT_EQ(group.first_channel, 448);
    const bool local = group.layers == "sliding_attention";
    EXPECT_EQ(group.base, local ? 1e4 : 160000);
    EXPECT_EQ(spectrum_of(group, 1).gain, 1) << "its code multiplies by no gain";
    EXPECT_NEAR(frequency(group, 31) * (local ? 1 : 16) / std::pow(group.base, -62.0 / 64), 1,
                1e-14);
  }
}

TEST(ModelCode, HeadsOfSingleLayersHaveTheirSize) {
  // The configuration that transformers 5.24 saves for Gemma 4.
  const auto ropes = read(
      {{"model_type", "gemma4_text"},
       {"head_dim", 256},
       {"num_hidden_layers", 6},
       {"sliding_window", 512},
       {"per_layer_config", {{"05", {{"head_dim", 512}}}}},
       {"rope_parameters",
        {{"full_attention",
          {{"rope_type", "proportional"}, {"partial_rotary_factor", 0.25}, {"rope_theta", 1e6}}},
         {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}}}});
  ASSERT_EQ(ropes.size(), 2U);
  EXPECT_EQ(ropes[0].head_dim, 512);
  EXPECT_THAT(ropes[0].layer_numbers, ElementsAre(5));
  EXPECT_NE(frequency(ropes[0], 63), 0);
  EXPECT_EQ(frequency(ropes[0], 64), 0);
  EXPECT_EQ(ropes[1].head_dim, 256);
}

}  // namespace
}  // namespace sextant::testing
