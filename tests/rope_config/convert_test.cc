// Conversions: no dialect changes a frequency, and a configuration that a dialect cannot express is
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "sextant/base/error.h"
#include "sextant/files/gguf.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/write_config.h"
#include "tests/rope_config/published.h"
#include "tests/rope_config/published_configs.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

void expect_same(const RopeConfig& a, const RopeConfig& b) {
  for (const int64_t length : {1, 4096, 4097, 200000}) {
    const Spectrum x = spectrum_of(a, length), y = spectrum_of(b, length);
    ASSERT_EQ(x.pairs.size(), y.pairs.size());
    for (size_t f = 0; f < x.pairs.size(); ++f) {
      EXPECT_EQ(x.pairs[f].frequency.high, y.pairs[f].frequency.high) << f;
      EXPECT_EQ(x.pairs[f].frequency.low, y.pairs[f].frequency.low) << f;
    }
    EXPECT_NEAR(x.gain, y.gain, 1e-6) << length;
  }
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_NEAR(a.scaling.score_factor, b.scaling.score_factor, 1e-6);
  EXPECT_EQ(a.scaling.query_scale.law, b.scaling.query_scale.law);
  EXPECT_EQ(a.scaling.sections, b.scaling.sections);
  EXPECT_EQ(explain(a, 0).target, explain(b, 0).target);
}

void expect_alike_but_for_sizes(const RopeConfig& a, const RopeConfig& b) {
  EXPECT_EQ(a.base, b.base);
  EXPECT_TRUE(a.scaling.stretch == b.scaling.stretch);
}

// GGUF stores the base and the divisors in float32.
void expect_close(const RopeConfig& a, const RopeConfig& b) {
  for (const int64_t length : {1, 4096, 4097, 200000}) {
    const Spectrum x = spectrum_of(a, length), y = spectrum_of(b, length);
    ASSERT_EQ(x.pairs.size(), y.pairs.size());
    for (size_t f = 0; f < x.pairs.size(); ++f) {
      EXPECT_NEAR(frequency(x, f), frequency(y, f), frequency(x, f) * 0x1p-23) << f;
    }
    EXPECT_NEAR(x.gain, y.gain, 1e-6) << length;
  }
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_NEAR(a.scaling.score_factor, b.scaling.score_factor, 1e-6);
  EXPECT_EQ(a.scaling.sections, b.scaling.sections);
  EXPECT_EQ(explain(a, 0).trained, explain(b, 0).trained);
  EXPECT_EQ(explain(a, 0).target, explain(b, 0).target);
}

// Writes the configurations in a dialect and parses them again; nullopt if the dialect cannot
// express them.
std::optional<std::vector<RopeConfig>> there_and_back(const ReadRopeConfig& read,
                                                      const std::string& dialect) {
  std::string written;
  try {
    written = write_rope_config(read, dialect);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("convert: "));
    return {};
  }
  const RopeConfig& first = read.configs[0];
  // Flags do not contain the size of heads.
  const bool flags = dialect == "llama.cpp" || dialect == "vllm";
  return read_rope_config_bytes(written, {.head_dim = flags ? first.head_dim : 0}).configs;
}

TEST(Convert, ThereAndBackGivesTheSameFrequenciesBitByBit) {
  std::map<std::string, int> said;
  for (const Published& one : published_configs()) {
    const ReadRopeConfig read = read_rope_config_bytes(one.config, {});
    for (const char* dialect : {"hf5", "hf4", "gguf", "llama.cpp", "vllm"}) {
      SCOPED_TRACE(one.name + " " + dialect);
      const auto back = there_and_back(read, dialect);
      if (!back) continue;
      ++said[dialect];
      // Only a whole configuration contains windows and layers that do not rotate.
      const bool whole = std::string(dialect).starts_with("hf");
      const auto before = whole ? read.configs : distinct_rotations(read.configs);
      const auto after = whole ? *back : distinct_rotations(*back);
      ASSERT_EQ(after.size(), before.size());
      if (std::string(dialect) == "gguf") {
        for (size_t n = 0; n < after.size(); ++n) expect_close(before[n], after[n]);
        continue;
      }
      for (size_t n = 0; n < after.size(); ++n) {
        ASSERT_EQ(before[n].rotates, after[n].rotates);
        if (!before[n].rotates) continue;
        // Flags are parsed with one size of heads and contain one length, for all layers.
        const bool several = std::string(dialect) == "vllm" && after.size() > 1;
        several ? expect_alike_but_for_sizes(before[n], after[n])
                : expect_same(before[n], after[n]);
      }
    }
  }
  EXPECT_GE(said["hf5"], 13);
  EXPECT_GE(said["hf4"], 12);
  EXPECT_GE(said["gguf"], 6);
  EXPECT_GE(said["llama.cpp"], 2);
  EXPECT_GE(said["vllm"], 6);
}

TEST(Convert, RefusesWhatADialectCannotSay) {
  const auto error_of = [](const std::string& name, const char* to, const char* words) {
    const ReadRopeConfig read = read_rope_config_bytes(config(name), {});
    EXPECT_THAT([&] { write_rope_config(read, to); }, ThrowsMessage<Error>(HasSubstr(words)));
  };
  error_of("gpt-oss", "gguf", "convert: gguf: truncate");
  error_of("gpt-oss", "llama.cpp", "convert: llama.cpp: truncate");
  error_of("internlm2", "gguf", "convert: gguf: dynamic: expected a fixed scaling");
  error_of("gemma-3", "llama.cpp", "convert: llama.cpp: expected one configuration");
  const ReadRopeConfig two = read_rope_config_bytes(
      R"({"head_dim": 64, "rope_parameters": {
          "full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 1e6},
          "sliding_attention": {"rope_type": "linear", "factor": 2, "rope_theta": 1e4}}})",
      {});
  EXPECT_THAT([&] { write_rope_config(two, "hf4"); },
              ThrowsMessage<Error>(HasSubstr("convert: hf4: expected one scaling for all layers")));
  error_of("qwen-1", "hf5", "convert: qwen-ntk: expected a scaling that Hugging Face has");
  error_of(
      "gpt-neox-partial", "llama.cpp",
      "convert: llama.cpp: partial_rotary_factor: expected all 96 channels to rotate, but got 24");
  error_of("qwen2-vl", "llama.cpp", "convert: llama.cpp: mrope_section: expected none");
  for (const char* to : {"gguf", "llama.cpp", "vllm", "hf4"}) {
    error_of("ministral-3", to, "llama_4_scaling_beta: expected none");
  }
  error_of("gemma-4-12b", "hf4",
           "convert: hf4: proportional: expected a scaling that version 4 has");
  const ReadRopeConfig logn = read_rope_config_bytes(
      R"({"head_dim": 64, "rope_theta": 1e4, "seq_length": 2048, "use_logn_attn": true})", {});
  for (const char* to : {"gguf", "llama.cpp", "vllm"}) {
    EXPECT_THAT([&] { write_rope_config(logn, to); },
                ThrowsMessage<Error>(HasSubstr("use_logn_attn: expected false")));
  }
  EXPECT_THAT([] { gguf_architecture("frob"); },
              ThrowsMessage<Error>(HasSubstr("model_type: expected a model that llama.cpp")));
}

TEST(Convert, DualChunksAreTheModelsOnly) {
  const RopeConfig rope{.head_dim = 64, .rotary_dim = 64, .base = 1e7, .dual_chunk = 262144};
  for (const char* to : {"gguf", "llama.cpp"}) {
    EXPECT_THAT(
        [&] {
          write_rope_config({"", "", {rope}}, to);
        },
        ThrowsMessage<Error>(HasSubstr("dual_chunk_attention_config: expected none")));
  }
}

TEST(Convert, GgufHasSectionsWhereTheArchitectureHas) {
  const auto written = [](const std::string& model_type, const std::string& more) {
    const std::string config =
        R"({"head_dim": 128, "rope_theta": 1e6, "model_type": ")" + model_type +
        R"(", "rope_scaling": {"rope_type": "default", "mrope_section": [24, 20, 20])" + more +
        "}}";
    return parse_gguf(write_rope_config(read_rope_config_bytes(config, {}), "gguf")).metadata;
  };
  const std::string interleaved = R"(, "mrope_interleaved": true)";
  const std::vector<double> sections = {24, 20, 20, 0};
  EXPECT_EQ(
      std::get<GgufArray>(written("qwen2_vl", interleaved).at("qwen2vl.rope.dimension_sections"))
          .numbers,
      sections);
  EXPECT_EQ(std::get<GgufArray>(
                written("qwen3_vl_text", interleaved).at("qwen3vl.rope.dimension_sections"))
                .numbers,
            sections);
  EXPECT_THAT([&] { written("hunyuan_vl", interleaved); },
              ThrowsMessage<Error>(HasSubstr("mrope_section: expected none for the architecture")));
  EXPECT_THAT([&] { written("llama", ""); },
              ThrowsMessage<Error>(HasSubstr("mrope_section: expected none for the architecture")));
}

TEST(Convert, KeepsThePartOfEachTypeOfLayer) {
  const ReadRopeConfig read = read_rope_config_bytes(
      R"({"head_dim": 64, "partial_rotary_factor": 0.25, "rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": 1e6,)"
      R"( "partial_rotary_factor": 0.5},
          "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}})",
      {});
  const auto back = read_rope_config_bytes(write_rope_config(read, "hf5"), {}).configs;
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].rotary_dim, 32);
  EXPECT_EQ(back[1].rotary_dim, 16);
  EXPECT_THAT([&] { write_rope_config(read, "hf4"); },
              ThrowsMessage<Error>(HasSubstr("convert: hf4: partial_rotary_factor: expected one")));
}

TEST(Convert, HeadsOfLayersWithAWindowHaveTheirSize) {
  const RopeConfig full{
      .layers = "full_attention", .head_dim = 512, .rotary_dim = 512, .base = 1e6};
  const RopeConfig window{
      .layers = "sliding_attention", .head_dim = 256, .rotary_dim = 256, .base = 1e4};
  const json config = write_hugging_face({}, {full, window}, 5);
  EXPECT_EQ(config.at("head_dim"), 256);
  EXPECT_EQ(config.at("global_head_dim"), 512);
}

// Hugging Face and vLLM compute int(head_dim * factor).
TEST(Convert, ThePartOfTheChannelsIsExact) {
  for (int64_t all = 2; all <= 128; all += 2) {
    for (int64_t some = 2; some <= all; some += 2) {
      const RopeConfig rope{.head_dim = all, .rotary_dim = some, .base = 1e4};
      const json config = write_hugging_face({}, {rope}, some % 4 == 0 ? 4 : 5);
      EXPECT_EQ(read_hugging_face(config).at(0).rotary_dim, some) << all;
    }
  }
}

// transformers 4: Phi3Config requires exactly three fields, and the forward pass reads L beside
// them.
TEST(Convert, LongRopeIsWhatVersion4Reads) {
  const ReadRopeConfig read = read_rope_config_bytes(config("phi-3-128k"), {});
  const json four = json::parse(write_rope_config(read, "hf4"));
  EXPECT_EQ(four.at("original_max_position_embeddings"), 4096);
  EXPECT_EQ(four.at("rope_scaling").size(), 3u);
  EXPECT_EQ(four.at("rope_scaling").at("type"), "longrope");
}

// vLLM takes the factor relative to qk_rope_head_dim, and has the model's own name for the type.
TEST(Convert, LatentAttentionTellsVllmItsSizes) {
  const ReadRopeConfig read = read_rope_config_bytes(config("deepseek-v3"), {});
  const std::string line = write_rope_config(read, "vllm");
  EXPECT_THAT(line, Not(HasSubstr("partial_rotary_factor")));
  const RopeConfig back = read_rope_config_bytes(line, {}).configs.at(0);
  EXPECT_EQ(back.rotary_dim, 64);
  EXPECT_EQ(back.head_dim, 192);
  EXPECT_NEAR(back.scaling.score_factor, 1.8739, 5e-5);
}

TEST(Convert, FlagsAskForTheStretchedLength) {
  const ReadRopeConfig read = read_rope_config_bytes(
      R"({"head_dim": 128, "rope_theta": 1e6, "max_position_embeddings": 32768, "rope_scaling":
          {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 32768}})",
      {});
  EXPECT_THAT(write_rope_config(read, "llama.cpp"), HasSubstr(" -c 131072"));
  const std::string vllm = write_rope_config(read, "vllm");
  EXPECT_THAT(vllm, HasSubstr("--max-model-len 131072"));
  EXPECT_THAT(vllm, HasSubstr(R"("max_position_embeddings":131072)"));
}

TEST(Convert, GgufHasLlamaCppsNames) {
  const auto prefix = [](const char* model_type) {
    const ReadRopeConfig read = read_rope_config_bytes(
        std::string(R"({"head_dim": 64, "rope_theta": 1e4, "model_type": ")") + model_type + "\"}",
        {});
    return parse_gguf(write_rope_config(read, "gguf")).metadata;
  };
  EXPECT_TRUE(prefix("mistral").contains("llama.rope.freq_base"));
  EXPECT_TRUE(prefix("gpt_neox").contains("gptneox.rope.freq_base"));
  EXPECT_TRUE(prefix("llama4_text").contains("llama4.rope.freq_base"));
  EXPECT_EQ(gguf_architecture("deepseek_v3"), "deepseek2");
  EXPECT_EQ(gguf_architecture("qwen2_vl"), "qwen2vl");
}

}  // namespace
}  // namespace sextant::testing
