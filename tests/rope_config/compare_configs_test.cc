// Differences between two configurations are found, with their layers and causes.
#include "sextant/rope_config/compare_configs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/rope_config/write_config.h"
#include "tests/rope_config/gguf_files.h"

namespace sextant {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Metadata;
using testing::read_gguf;
using testing::scaling;
using testing::with;

json llama() {
  return {{"model_type", "llama"},
          {"hidden_size", 1024},
          {"num_attention_heads", 8},
          {"num_hidden_layers", 4},
          {"max_position_embeddings", 32768},
          {"rope_theta", 10000.0}};
}

json changed(json config, const json& changes) {
  config.update(changes);
  return config;
}

ReadRopeConfig read(const json& config) { return read_rope_config_bytes(config.dump(), {}); }

json yarn(double factor) {
  return {
      {"rope_scaling",
       {{"rope_type", "yarn"}, {"factor", factor}, {"original_max_position_embeddings", 8192}}}};
}

json dynamic(double factor) {
  return {{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", factor}}}};
}

// A hybrid whose other layers do not attend.
json hybrid(const std::vector<std::string>& layers) {
  return changed(llama(), {{"model_type", "qwen3_next"},
                           {"head_dim", 256},
                           {"num_key_value_heads", 2},
                           {"partial_rotary_factor", 0.25},
                           {"layer_types", layers}});
}

struct Planted {
  std::string name;
  ReadRopeConfig a, b;
  std::string field, cause;
};

json gemma(const json& changes) {
  return changed({{"model_type", "gemma3_text"},
                  {"hidden_size", 1024},
                  {"num_attention_heads", 4},
                  {"head_dim", 256},
                  {"num_hidden_layers", 6},
                  {"max_position_embeddings", 32768},
                  {"rope_theta", 1000000.0},
                  {"rope_local_base_freq", 10000.0},
                  {"sliding_window", 512},
                  {"query_pre_attn_scalar", 256}},
                 changes);
}

std::vector<Planted> json_pairs() {
  const json plain = llama(), stretched = changed(plain, yarn(4));
  const auto yarn_with = [&](const json& more) {
    json config = stretched;
    config["rope_scaling"].update(more);
    return read(config);
  };
  return {
      {"base", read(plain), read(changed(plain, {{"rope_theta", 500000.0}})), "frequencies",
       "the base is 10000 and 500000"},
      {"stretch dropped", read(stretched), read(plain), "frequencies",
       "the stretch is YaRN and plain RoPE"},
      {"another factor", read(stretched), read(changed(plain, yarn(2))), "frequencies",
       "factor 4 and 2"},
      {"another original length", read(stretched),
       yarn_with({{"original_max_position_embeddings", 4096}}), "frequencies", "8192 and 4096"},
      {"linear for yarn", read(stretched),
       read(changed(plain, {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 4.0}}}})),
       "frequencies", "the stretch is YaRN and"},
      {"gain dropped", read(stretched), yarn_with({{"attention_factor", 1.0}}), "attention factor",
       "is missing"},
      {"another gain", read(stretched), yarn_with({{"attention_factor", 1.3}}), "attention factor",
       "attention_factor"},
      {"truncate", read(stretched), yarn_with({{"truncate", false}}), "frequencies", "truncate"},
      {"betas", read(stretched), yarn_with({{"beta_fast", 16.0}}), "frequencies", "beta_fast"},
      {"dynamic factor", read(changed(plain, dynamic(4))), read(changed(plain, dynamic(8))),
       "frequencies", "has the factor 4 and 8"},
      // Just beyond so long an original length, the two factors differ by rounding only.
      {"dynamic factor of a long model",
       read(changed(changed(plain, dynamic(2)), {{"max_position_embeddings", 1048576}})),
       read(changed(changed(plain, dynamic(2.5)), {{"max_position_embeddings", 1048576}})),
       "frequencies", "has the factor 2 and 2.5"},
      {"dynamic dropped", read(changed(plain, dynamic(4))), read(plain), "frequencies",
       "the stretch is"},
      {"layers that attend",
       read(hybrid({"linear_attention", "full_attention", "linear_attention", "full_attention"})),
       read(hybrid({"full_attention", "full_attention", "full_attention", "full_attention"})),
       "layers", ""},
      {"window", read(gemma(json::object())), read(gemma({{"sliding_window", 1024}})), "window",
       ""},
      {"local base", read(gemma(json::object())),
       read(gemma({{"rope_local_base_freq", 1000000.0}})), "frequencies", "the base is"},
      {"pattern of windows", read(gemma(json::object())),
       read(gemma({{"sliding_window_pattern", 3}})), "window", ""},
      {"scale", read(gemma(json::object())), read(gemma({{"query_pre_attn_scalar", 144}})),
       "softmax scale", "times the first"},
      {"head size", read(plain), read(changed(plain, {{"head_dim", 64}})), "rotated channels", ""},
      {"depth", read(gemma(json::object())), read(gemma({{"num_hidden_layers", 5}})), "layers", ""},
  };
}

// Divisors of the slower half of the pairs.
testing::Tensors divisors(float divisor) {
  std::vector<float> all(64, 1.0F);
  std::fill(all.begin() + 32, all.end(), divisor);
  return {{"rope_freqs.weight", all}};
}

std::vector<Planted> gguf_pairs() {
  const Metadata stretched = scaling("yarn", 4, 8192);
  const Metadata windows = {{"block_count", uint64_t{26}},
                            {"attention.sliding_window", uint64_t{512}}};
  const Metadata mixed =
      with(windows, {{"attention.sliding_window_pattern",
                      GgufArray{.numbers = {1, 1, 1, 0, 1, 1, 1, 0}, .count = 8}},
                     {"block_count", uint64_t{8}}});
  const Metadata latent = {{"attention.kv_lora_rank", uint64_t{512}},
                           {"rope.dimension_count", uint64_t{64}}};
  return {
      {"base", read_gguf("qwen2", {}), read_gguf("qwen2", {{"rope.freq_base", 10000.0}}),
       "frequencies", "the base is 1e+06 and 10000"},
      {"stretch dropped", read_gguf("qwen2", stretched), read_gguf("qwen2", {}), "frequencies",
       "the stretch is YaRN"},
      {"factor", read_gguf("qwen2", stretched), read_gguf("qwen2", scaling("yarn", 8, 8192)),
       "frequencies", "factor 4 and 8"},
      {"original length", read_gguf("qwen2", stretched),
       read_gguf("qwen2", scaling("yarn", 4, 4096)), "frequencies", "8192 and 4096"},
      {"type", read_gguf("qwen2", stretched), read_gguf("qwen2", scaling("linear", 4)),
       "frequencies", "the stretch is YaRN"},
      {"gain", read_gguf("qwen2", stretched),
       read_gguf("qwen2", with(stretched, {{"rope.scaling.attn_factor", 1.25}})),
       "attention factor", "YaRN"},
      {"part", read_gguf("gptneox", {{"rope.dimension_count", uint64_t{32}}}),
       read_gguf("gptneox", {{"rope.dimension_count", uint64_t{64}}}), "rotated channels", ""},
      {"pairs", read_gguf("llama", {}), read_gguf("qwen2", {}), "pairing", "same weights"},
      {"head size", read_gguf("qwen2", {}),
       read_gguf("qwen2", {{"attention.key_length", uint64_t{64}}}), "rotated channels", ""},
      {"linear, dropped", read_gguf("qwen2", scaling("linear", 4)), read_gguf("qwen2", {}),
       "frequencies", "the stretch is"},
      {"beta_fast", read_gguf("mistral3", stretched),
       read_gguf("mistral3", with(stretched, {{"rope.scaling.yarn_beta_fast", 16.0}})),
       "frequencies", "beta_fast"},
      {"divisors dropped", read_gguf("llama", {}, divisors(8)), read_gguf("llama", {}),
       "frequencies", ""},
      {"other divisors", read_gguf("llama", {}, divisors(8)), read_gguf("llama", {}, divisors(4)),
       "frequencies", ""},
      {"softmax scale", read_gguf("granite", {{"attention.scale", 0.0078125}}),
       read_gguf("granite", {{"attention.scale", 0.015625}}), "softmax scale", "times the first"},
      {"factor of deepseek", read_gguf("deepseek2", with(latent, stretched)),
       read_gguf("deepseek2",
                 with(with(latent, stretched), {{"rope.scaling.yarn_log_multiplier", 0.1}})),
       "attention factor", "is missing"},
      {"no rotation", read_gguf("granitehybrid", {}),
       read_gguf("granitehybrid", {{"rope.scaling.finetuned", false}}), "rotates", ""},
      {"window", read_gguf("gemma3", windows),
       read_gguf("gemma3", with(windows, {{"attention.sliding_window", uint64_t{1024}}})), "window",
       ""},
      {"depth", read_gguf("gemma3", windows),
       read_gguf("gemma3", with(windows, {{"block_count", uint64_t{12}}})), "layers", ""},
      {"base of layers with a window", read_gguf("mimo2", mixed),
       read_gguf("mimo2", with(mixed, {{"rope.freq_base_swa", 50000.0}})), "frequencies",
       "the base is"},
      {"law of queries", read_gguf("mistral3", stretched),
       read_gguf("mistral3", with(stretched, {{"attention.temperature_scale", 0.1}})), "query law",
       ""},
  };
}

void expect_found(const std::vector<Planted>& all) {
  for (const Planted& planted : all) {
    SCOPED_TRACE(planted.name);
    const ConfigComparison result = compare_configs(planted.a, planted.b);
    bool found = false;
    std::string said;
    for (const ConfigFinding& x : result.findings) {
      said += x.field + ": " + x.expected + "; " + x.got + "; " + x.cause + "\n";
      found |= x.field == planted.field && x.cause.find(planted.cause) != std::string::npos;
    }
    EXPECT_TRUE(found) << said;
    EXPECT_TRUE(compare_configs(planted.a, planted.a).findings.empty());
    EXPECT_TRUE(compare_configs(planted.b, planted.b).findings.empty());
  }
}

TEST(CompareConfigs, FindsDifferencesOfConfigurations) { expect_found(json_pairs()); }

TEST(CompareConfigs, FindsDifferencesOfGgufFiles) { expect_found(gguf_pairs()); }

TEST(CompareConfigs, NamesTheLayers) {
  const ConfigComparison result =
      compare_configs(read(gemma(json::object())), read(gemma({{"sliding_window", 1024}})));
  ASSERT_EQ(result.findings.size(), 1);
  EXPECT_EQ(result.findings[0].layers, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(result.findings[0].expected, "512 keys");
  EXPECT_EQ(result.findings[0].got, "1024 keys");
}

TEST(CompareConfigs, AWindowHidesNoFrequencies) {
  const auto mistral = [](int window, double factor) {
    return read(changed(changed(llama(), dynamic(factor)),
                        {{"model_type", "mistral"}, {"sliding_window", window}}));
  };
  const ConfigComparison result = compare_configs(mistral(4096, 4), mistral(2048, 8));
  ASSERT_EQ(result.findings.size(), 2);
  EXPECT_EQ(result.findings[0].field, "window");
  EXPECT_EQ(result.findings[1].field, "frequencies");
  EXPECT_THAT(result.findings[1].cause, HasSubstr("has the factor 4 and 8"));
}

TEST(CompareConfigs, LayersThatOneSideLacksAreNamed) {
  const ReadRopeConfig some =
      read(hybrid({"linear_attention", "full_attention", "linear_attention", "full_attention"}));
  const ReadRopeConfig all =
      read(hybrid({"full_attention", "full_attention", "full_attention", "full_attention"}));
  const ConfigComparison result = compare_configs(some, all);
  ASSERT_EQ(result.findings.size(), 1);
  EXPECT_EQ(result.findings[0].layers, (std::vector<int64_t>{0, 2}));
  EXPECT_THAT(result.findings[0].got, HasSubstr("the second has these layers"));
  EXPECT_THAT(compare_configs(all, some).findings.at(0).got,
              HasSubstr("the first has these layers"));
}

TEST(CompareConfigs, KindsAreComparedWhereLayersHaveNoNumbers) {
  json unnumbered = gemma(json::object());
  unnumbered.erase("num_hidden_layers");
  const ReadRopeConfig own = read(unnumbered), other = read(gemma({{"sliding_window", 1024}}));
  for (const ConfigComparison& result :
       {compare_configs(own, other), compare_configs(other, own)}) {
    ASSERT_EQ(result.findings.size(), 1);
    EXPECT_EQ(result.findings[0].field, "window");
    EXPECT_EQ(result.findings[0].kind, "sliding_attention");
    EXPECT_TRUE(result.findings[0].layers.empty());
    EXPECT_TRUE(result.unjudged.empty());
  }
}

TEST(CompareConfigs, AKindThatOneSideLacksIsNotJudged) {
  json unnumbered = gemma(json::object());
  unnumbered.erase("num_hidden_layers");
  const ReadRopeConfig both = read(unnumbered);
  ReadRopeConfig two = both, three = both;
  two.configs.push_back(two.configs.front());
  two.configs.back().layers = "global";
  three.configs.push_back(three.configs.front());
  three.configs.back().layers = "chunked";
  const ConfigComparison result = compare_configs(two, three);
  EXPECT_TRUE(result.findings.empty());
  ASSERT_EQ(result.unjudged.size(), 2);
  EXPECT_EQ(result.unjudged[0].what, "layers global");
  EXPECT_THAT(result.unjudged[0].why, HasSubstr("only the first"));
  EXPECT_EQ(result.unjudged[1].what, "layers chunked");
  EXPECT_THAT(result.unjudged[1].why, HasSubstr("only the second"));
}

TEST(CompareConfigs, ASoundConversionHasNoFindings) {
  const json llama3 = {{"rope_scaling",
                        {{"rope_type", "llama3"},
                         {"factor", 8.0},
                         {"low_freq_factor", 1.0},
                         {"high_freq_factor", 4.0},
                         {"original_max_position_embeddings", 8192}}}};
  for (const json& config : {llama(), changed(llama(), yarn(4)), changed(llama(), llama3)}) {
    const ReadRopeConfig own = read(config);
    const ReadRopeConfig gguf = read_rope_config_bytes(write_rope_config(own, "gguf"), {});
    const ConfigComparison result = compare_configs(own, gguf);
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].field << result.findings[0].got;
    EXPECT_TRUE(result.unjudged.empty());
    ASSERT_EQ(result.notes.size(), 1);
    EXPECT_THAT(result.notes[0], HasSubstr("permuted the weights"));
  }
}

TEST(CompareConfigs, AWindowOfAllPositionsIsNone) {
  const json mistral = changed(llama(), {{"model_type", "mistral"}});
  const ReadRopeConfig none = read(changed(mistral, {{"sliding_window", nullptr}}));
  EXPECT_TRUE(
      compare_configs(none, read(changed(mistral, {{"sliding_window", 32768}}))).findings.empty());
  const ReadRopeConfig bounded = read(changed(mistral, {{"sliding_window", 4096}}));
  EXPECT_EQ(compare_configs(none, bounded).findings.at(0).field, "window");
}

TEST(CompareConfigs, WindowsOfSomeLayersAreNotJudgedByLayer) {
  const json gemma2 = {{"model_type", "gemma2"},       {"hidden_size", 1024},
                       {"num_attention_heads", 4},     {"head_dim", 256},
                       {"num_hidden_layers", 4},       {"max_position_embeddings", 8192},
                       {"query_pre_attn_scalar", 256}, {"rope_theta", 10000.0},
                       {"sliding_window", 4096}};
  const ReadRopeConfig own = read(gemma2);
  const ReadRopeConfig gguf = read_rope_config_bytes(write_rope_config(own, "gguf"), {});
  EXPECT_TRUE(compare_configs(own, gguf).findings.empty());
}

TEST(CompareConfigs, AGgufFileWithoutTheStretchIsFound) {
  const ReadRopeConfig gguf = read_rope_config_bytes(write_rope_config(read(llama()), "gguf"), {});
  const ConfigComparison result = compare_configs(read(changed(llama(), yarn(4))), gguf);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_THAT(result.findings[0].cause, HasSubstr("the stretch is YaRN and plain RoPE"));
}

TEST(CheckConfig, KeysThatLlamaCppDoesNotReadAreFound) {
  const Metadata keys = with(scaling("yarn", 4, 8192), {{"rope.scaling.yarn_beta_fast", 64.0}});
  const ConfigComparison result = check_config(read_gguf("qwen2", keys));
  ASSERT_EQ(result.findings.size(), 1);
  EXPECT_TRUE(result.findings[0].warning);
  EXPECT_THAT(result.findings[0].got, HasSubstr("yarn_beta_fast is 64"));
  EXPECT_TRUE(check_config(read_gguf("qwen2", scaling("yarn", 4, 8192))).findings.empty());
}

}  // namespace
}  // namespace sextant
