// Values written into GGUF files and flags, and warnings of the writers.
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
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

TEST(GgufWriter, RoundsToFloat32AndSaysSo) {
  const RopeConfig rope{.model_type = "llama", .head_dim = 64, .rotary_dim = 64, .base = 10000.1};
  std::vector<std::string> warnings;
  const std::string bytes = write_rope_config({"", "", {rope}}, "gguf", warnings);
  EXPECT_THAT(warnings, Contains(HasSubstr("float32, which rounds rope.freq_base")));
  EXPECT_NEAR(read_rope_config_bytes(bytes, {}).configs.at(0).base / 10000.1, 1, 0x1p-24);
  warnings.clear();
  write_rope_config({"", "", {{.head_dim = 64, .rotary_dim = 64, .base = 1e4}}}, "gguf", warnings);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(GgufWriter, SaysLayersWithAWindowInKeysOfTheirOwn) {
  const RopeConfig full{.layers = "full_attention",
                        .model_type = "gemma4_text",
                        .head_dim = 512,
                        .rotary_dim = 512,
                        .base = 1e6,
                        .softmax_scale = 1};
  RopeConfig local = full;
  local.layers = "sliding_attention";
  local.head_dim = local.rotary_dim = 256;
  local.base = 1e4;
  local.window = 1024;
  RopeConfig part = full;
  part.scaling.type = "proportional";
  part.scaling.stretch = Stretch{Proportional{.part = 0.25}};
  const std::string bytes = write_rope_config({"", "", {part, local}}, "gguf");
  const Gguf gguf = parse_gguf(bytes);
  EXPECT_TRUE(gguf.metadata.contains("gemma4.rope.freq_base_swa"));
  EXPECT_TRUE(gguf.metadata.contains("gemma4.rope.dimension_count_swa"));
  EXPECT_TRUE(gguf.metadata.contains("gemma4.attention.key_length_swa"));
  const auto back = read_rope_config_bytes(bytes, {}).configs;
  ASSERT_EQ(back.size(), 2U);
  EXPECT_TRUE(rotate_alike(back[0], part));
  EXPECT_TRUE(rotate_alike(back[1], local));
  RopeConfig llama = full;
  llama.model_type = local.model_type = "llama";
  EXPECT_THAT(
      [&] {
        write_rope_config({"", "", {llama, local}}, "gguf");
      },
      ThrowsMessage<Error>(
          HasSubstr("convert: gguf: expected one configuration for all layers, or")));
}

TEST(Writers, RefuseModelsThatRotateNothing) {
  RopeConfig still{.model_type = "nemotron_h", .rotates = false};
  for (const char* to : {"gguf", "vllm", "llama.cpp"}) {
    EXPECT_THAT(
        [&] {
          write_rope_config({"", "", {still}}, to);
        },
        ThrowsMessage<Error>(HasSubstr("model_type: expected a model that rotates queries and "
                                       "keys, but nemotron_h does not")));
  }
}

// Mistral's gain of 1, which no flag of llama.cpp can express.
TEST(Writers, WarnOfAGainThatFlagsCannotSay) {
  RopeConfig rope{.head_dim = 128, .rotary_dim = 128, .base = 1e6};
  rope.scaling.type = "yarn";
  rope.scaling.stretch = Stretch{
      Yarn{.factor = 16, .original_length = 16384, .base = 1e6, .mscale = 1, .mscale_all_dim = 1}};
  std::vector<std::string> warnings;
  const std::string flags = write_rope_config({"", "", {rope}}, "llama.cpp", warnings);
  EXPECT_THAT(flags, Not(HasSubstr("--yarn-attn-factor")));
  EXPECT_THAT(warnings, Contains(HasSubstr("attention_factor: this model's is 1.0")));
  EXPECT_THAT(warnings, Contains(HasSubstr("#17945")));
}

std::vector<std::string> warnings_of(const ReadRopeConfig& read, const char* to) {
  std::vector<std::string> warnings;
  write_rope_config(read, to, warnings);
  return warnings;
}

ReadRopeConfig model_of(const std::string& type, const std::string& more = "") {
  return read_rope_config_bytes(
      R"({"hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 2, "head_dim": 64,
          "max_position_embeddings": 8192, "rope_theta": 1e4, "model_type": ")" +
          type + "\"" + more + "}",
      {});
}

// llama.cpp's converter permutes the weights of Llama, but not of Qwen.
TEST(Writers, WarnOfPairsInAnotherOrder) {
  const auto in_llama = HasSubstr(
      "this model rotates half-split pairs, and llama.cpp interleaved ones in the architecture "
      "llama");
  EXPECT_THAT(warnings_of(model_of("llama"), "gguf"), Contains(in_llama));
  EXPECT_THAT(warnings_of(model_of("llama"), "gguf"), Contains(HasSubstr("permutes the weights")));
  EXPECT_THAT(warnings_of(model_of("qwen2"), "gguf"), Each(Not(HasSubstr("pairs, and llama.cpp"))));
  EXPECT_THAT(warnings_of(model_of("cohere"), "gguf"),
              Each(Not(HasSubstr("pairs, and llama.cpp"))));
  EXPECT_THAT(warnings_of(model_of("llama"), "hf4"), IsEmpty());
}

TEST(Writers, WarnOfPairsOfAGgufFile) {
  const auto back = HasSubstr(
      "llama.cpp rotates interleaved pairs in the architecture llama, and transformers half-split "
      "ones");
  EXPECT_THAT(warnings_of(read_gguf("llama", {}), "hf5"), Contains(back));
  EXPECT_THAT(warnings_of(read_gguf("llama", {}), "hf4"), Contains(back));
  EXPECT_THAT(warnings_of(read_gguf("llama", {}), "gguf"), IsEmpty());
  EXPECT_THAT(warnings_of(read_gguf("qwen2", {}), "hf5"), IsEmpty());
  // The pairing of DeepSeek V3 depends on rope_interleave.
  EXPECT_THAT(warnings_of(read_gguf("deepseek2", {}), "hf5"), IsEmpty());
  // With several axes llama.cpp rotates half-split pairs only.
  const GgufArray sections{.numbers = {24, 20, 20, 0}, .count = 4};
  EXPECT_THAT(warnings_of(read_gguf("glm4", {{"rope.dimension_sections", sections}}), "hf5"),
              Contains(HasSubstr("llama.cpp rotates half-split pairs in the architecture glm4, and "
                                 "transformers interleaved ones")));
}

// llama.cpp reads these keys for two architectures only.
TEST(Writers, WarnOfBetasThatLlamaCppDoesNotRead) {
  const std::string yarn =
      R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4, "beta_fast": 16,
          "original_max_position_embeddings": 2048})";
  const auto warning = HasSubstr("--yarn-beta-fast 16.0 --yarn-beta-slow 1.0");
  EXPECT_THAT(warnings_of(model_of("qwen2", yarn), "gguf"), Contains(warning));
  EXPECT_THAT(warnings_of(model_of("ministral3", yarn), "gguf"), Each(Not(warning)));
  Metadata keys = scaling("yarn", 4, 32768);
  keys["rope.scaling.yarn_beta_fast"] = 16.0;
  const auto unread = Contains(HasSubstr("reads the first two in grok and mistral3 only"));
  EXPECT_THAT(read_gguf("qwen2", keys).configs.at(0).scaling.warnings, unread);
  EXPECT_THAT(read_gguf("mistral3", keys).configs.at(0).scaling.warnings, Not(unread));
}

// From 0.30 on, vLLM has no field for the gain of latent attention.
TEST(Writers, WarnOfAGainOfLatentAttention) {
  const std::string start =
      R"(, "qk_rope_head_dim": 32, "qk_nope_head_dim": 32, "rope_scaling": {"rope_type": "yarn",
          "factor": 4, "original_max_position_embeddings": 2048)";
  const auto warning = HasSubstr("vLLM reads this gain up to 0.29.0 only");
  EXPECT_THAT(warnings_of(model_of("deepseek_v3", start + ", \"attention_factor\": 2}"), "vllm"),
              Contains(warning));
  EXPECT_THAT(
      warnings_of(model_of("deepseek_v3", start + ", \"mscale\": 1, \"mscale_all_dim\": 1}"),
                  "vllm"),
      Each(Not(warning)));
}

TEST(Writers, NestVllmsOverridesWhereTheConfigWasFound) {
  const ReadRopeConfig nested = read_rope_config_bytes(
      R"({"text_config": {"head_dim": 64, "hidden_size": 512, "num_hidden_layers": 2,
          "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4,
          "original_max_position_embeddings": 8192}}})",
      {});
  EXPECT_EQ(nested.place, "text_config");
  EXPECT_THAT(write_rope_config(nested, "vllm"),
              HasSubstr(R"({"text_config":{"max_position_embeddings":32768,"rope_parameters":{)"));
}

TEST(Writers, SayGroupsOfLayersToVllm) {
  const ReadRopeConfig two = read_rope_config_bytes(
      R"({"head_dim": 64, "rope_parameters": {
          "full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 1e6},
          "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}})",
      {});
  const std::string line = write_rope_config(two, "vllm");
  EXPECT_THAT(line, HasSubstr("full_attention"));
  const auto back = read_rope_config_bytes(line, {.head_dim = 64}).configs;
  ASSERT_EQ(back.size(), 2U);
  EXPECT_TRUE(rotate_alike(back[0], two.configs[0]));
  EXPECT_TRUE(rotate_alike(back[1], two.configs[1]));
}

}  // namespace
}  // namespace sextant::testing
