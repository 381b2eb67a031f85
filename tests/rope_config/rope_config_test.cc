// Published configurations: what they resolve to, and that no dialect changes a frequency.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sextant/error.h"
#include "sextant/files/gguf.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/write_config.h"
#include "tests/rope_config/published.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

std::string config(const std::string& name) {
  for (const Published& one : published_configs())
    if (one.name == name) return one.config;
  throw Error("no configuration " + name);
}

RopeConfig setting(const std::string& name, size_t n = 0) {
  return read_rope_config_bytes(config(name), {}).settings.at(n);
}

double speed(const Spectrum& spectrum, size_t f) {
  return static_cast<double>(spectrum.pairs.at(f).speed);
}

TEST(Published, ResolveAsTheirOfficialCode) {
  // rotary.md 3.3 to 3.5; sizes, gains and factors of the official code.
  EXPECT_NEAR(setting("deepseek-v3").scaling.score_factor, 1.8739, 5e-5);
  EXPECT_EQ(setting("deepseek-v3").head_dim, 192);
  EXPECT_EQ(setting("deepseek-v3").rotary_dim, 64);
  EXPECT_EQ(spectrum_of(setting("deepseek-v3"), 1).gain, 1);
  EXPECT_NEAR(spectrum_of(setting("gpt-oss"), 1).gain, 0.1 * std::log(32) + 1, 1e-15);
  EXPECT_NEAR(spectrum_of(setting("phi-3-128k"), 1).gain, 1.19024, 5e-6);
  EXPECT_NEAR(spectrum_of(setting("phi-3-128k"), 4097).gain, 1.19024, 5e-6);
  EXPECT_NEAR(spectrum_of(setting("qwen2.5-7b-yarn"), 1).gain, 0.1 * std::log(4) + 1, 1e-15);
  EXPECT_EQ(setting("gpt-neox-partial").rotary_dim, 24);
  EXPECT_EQ(setting("ministral-3").scaling.query_scale.law, QueryLaw::kMinistral);
  EXPECT_EQ(setting("ministral-3").scaling.query_scale.length, 16384);
  EXPECT_EQ(setting("ministral-3").scaling.score_factor, 1) << "DeepSeek's models only";
  EXPECT_EQ(setting("qwen-1").scaling.query_scale.law, QueryLaw::kLogn);
}

// What their model cards and papers say; a whole file reads as its block does.
TEST(Published, WholeFilesResolve) {
  const auto slowest = [](const char* name) {
    const Spectrum spectrum = spectrum_of(setting(name), 1);
    return static_cast<double>(spectrum.pairs.back().speed);
  };
  const auto plain = [](double base, double dim) { return std::pow(base, 2 / dim - 1); };
  EXPECT_NEAR(slowest("llama-2-7b") / plain(1e4, 128), 1, 1e-14);
  EXPECT_NEAR(slowest("llama-3.2-1b") * 32 / plain(5e5, 64), 1, 1e-14);
  EXPECT_NEAR(slowest("mistral-7b") / plain(1e4, 128), 1, 1e-14);
  EXPECT_NEAR(slowest("qwen3-8b") / plain(1e6, 128), 1, 1e-14);
  EXPECT_NEAR(slowest("yarn-llama-2-7b-64k") * 16 / plain(1e4, 128), 1, 1e-14);
  EXPECT_NEAR(spectrum_of(setting("yarn-llama-2-7b-64k"), 1).gain, 1.27726, 5e-6);
  EXPECT_NEAR(slowest("deepseek-v2-lite") * 40 / plain(1e4, 64), 1, 1e-14);
  EXPECT_NEAR(setting("deepseek-v2-lite").scaling.score_factor, 1.5896, 5e-5);
  EXPECT_EQ(spectrum_of(setting("deepseek-v2-lite"), 1).gain, 1);
  EXPECT_EQ(setting("glm-4-9b").rotary_dim, 64);
  EXPECT_NEAR(slowest("glm-4-9b") / plain(1e4, 64), 1, 1e-14);
  EXPECT_EQ(setting("falcon-7b").rotary_dim, 64);
  EXPECT_EQ(explain(setting("llama-3.2-1b"), 0).trained, 8192);
  EXPECT_EQ(explain(setting("yarn-llama-2-7b-64k"), 0).target, 65536);
}

TEST(Published, FrequenciesAreThoseOfTheFormulas) {
  const Spectrum llama = spectrum_of(setting("llama-3.1-8b"), 1);
  EXPECT_EQ(speed(llama, 0), 1);
  EXPECT_NEAR(speed(llama, 63) * 8 / std::pow(5e5, -126.0 / 128), 1, 1e-14);
  const Spectrum linear = spectrum_of(setting("gemma-3"), 1);
  EXPECT_EQ(speed(linear, 0), 0.125);
  EXPECT_EQ(speed(spectrum_of(setting("gemma-3", 1), 1), 0), 1);
  EXPECT_EQ(setting("gemma-3", 1).base, 10000);
  const Spectrum proportional = spectrum_of(setting("gemma-4-12b"), 1);
  EXPECT_EQ(proportional.pairs.size(), 256u);
  EXPECT_NE(speed(proportional, 63), 0);
  EXPECT_EQ(speed(proportional, 64), 0);
  const Spectrum phi = spectrum_of(setting("phi-3-128k"), 4096);
  EXPECT_NEAR(speed(phi, 3), std::pow(1e4, -0.75) / 1.25, 1e-18);
  EXPECT_NEAR(speed(spectrum_of(setting("phi-3-128k"), 4097), 3), std::pow(1e4, -0.75) / 64.75,
              1e-18);
  // Dynamic: plain up to 32768, another base beyond.
  const RopeConfig internlm = setting("internlm2");
  EXPECT_EQ(speed(spectrum_of(internlm, 32768), 9), std::pow(1e6, -9.0 / 64));
  const double base = 1e6 * std::pow(2 * 65536.0 / 32768 - 1, 128.0 / 126);
  EXPECT_NEAR(speed(spectrum_of(internlm, 65536), 9) / std::pow(base, -9.0 / 64), 1, 1e-14);
}

// Layers with a window turn otherwise, whether or not the file says it for each type.
TEST(Published, LayersWithAWindowAreASettingOfTheirOwn) {
  const RopeConfig full = setting("gemma-4-12b"), local = setting("gemma-4-12b", 1);
  EXPECT_EQ(full.layers, "full_attention");
  EXPECT_EQ(full.head_dim, 512);
  EXPECT_EQ(full.window, 0);
  EXPECT_EQ(local.head_dim, 256);
  EXPECT_EQ(local.rotary_dim, 256);
  EXPECT_EQ(local.window, 1024);
  EXPECT_EQ(setting("olmo-3-7b").scaling.type, "yarn");
  EXPECT_EQ(setting("olmo-3-7b", 1).scaling.type, "default");
  EXPECT_EQ(setting("olmo-3-7b", 1).base, 500000);
  // Gemma 3 12B as released leaves its bases and the size of its heads to the code.
  const std::string released = R"({"model_type": "gemma3", "text_config": {
      "model_type": "gemma3_text", "hidden_size": 3840, "num_attention_heads": 16,
      "num_key_value_heads": 8, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
      "sliding_window": 1024}})";
  const auto both = read_rope_config_bytes(released, {}).settings;
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].head_dim, 256);
  EXPECT_EQ(both[0].base, 1e6);
  EXPECT_EQ(speed(spectrum_of(both[0], 1), 0), 0.125);
  EXPECT_EQ(speed(spectrum_of(both[1], 1), 0), 1);
  EXPECT_EQ(both[1].base, 10000);
  EXPECT_THAT(both[0].notes,
              Contains(HasSubstr("from gemma3_text's code (transformers 5.24.0, "
                                 "models/gemma3/modeling_gemma3.py): head_dim 256")));
  const auto other = read_rope_config_bytes(released, {.base = 5e5, .local_base = 2e4}).settings;
  EXPECT_EQ(other[0].base, 5e5);
  EXPECT_EQ(other[1].base, 2e4);
}

TEST(Published, SayWhatBoundsDistances) {
  EXPECT_EQ(setting("mistral-7b").window, 4096);
  EXPECT_EQ(setting("mistral-7b").bounded_in, "");
  EXPECT_EQ(setting("gpt-oss").layers, "full_attention");
  EXPECT_EQ(setting("gpt-oss").window, 0);
  EXPECT_EQ(setting("gpt-oss", 1).layers, "sliding_attention");
  EXPECT_EQ(setting("gpt-oss", 1).window, 128);
  EXPECT_EQ(setting("qwen2-vl").window, 0) << "use_sliding_window is false";
  EXPECT_EQ(setting("llama-4-scout").chunk, 8192);
  EXPECT_FALSE(setting("llama-4-scout", 1).rotates);
  EXPECT_EQ(setting("llama-4-scout", 1).chunk, 0);
  EXPECT_EQ(setting("llama-4-scout", 1).scaling.query_scale.law, QueryLaw::kLlama4);
  const RopeConfig million = setting("qwen2.5-7b-1m");
  EXPECT_EQ(million.dual_chunk, 262144);
  EXPECT_EQ(trained_length(million), 262144);
  EXPECT_THAT(million.scaling.warnings, Contains(HasSubstr("dual chunk attention")));
}

TEST(Published, AxesAreReadUnderEveryType) {
  EXPECT_EQ(setting("qwen2-vl").scaling.sections, (std::vector<int64_t>{16, 24, 24}));
  EXPECT_EQ(setting("qwen3-vl-8b").scaling.sections, (std::vector<int64_t>{24, 20, 20}));
  EXPECT_TRUE(setting("qwen3-vl-8b").scaling.interleaved_sections);
}

// HunYuan's code: the base times alpha^(R / (R - 2)), whatever the length.
TEST(Published, AlphaIsABaseAndNoLength) {
  const RopeConfig hunyuan = setting("hunyuan-large");
  EXPECT_NEAR(hunyuan.base / (1e4 * std::pow(1000, 80.0 / 78)), 1, 1e-14);
  EXPECT_FALSE(hunyuan.scaling.is_dynamic());
  EXPECT_EQ(explain(hunyuan, 0).target, 131072);
}

// Kimi: both ends of the ramp at one turn; pair 19 is kept and pair 20 interpolated.
TEST(Published, EqualBetasAreAStep) {
  const RopeConfig kimi = setting("yarn-beta1-beta1");
  const Spectrum spectrum = spectrum_of(kimi, 1);
  EXPECT_NEAR(speed(spectrum, 19) / std::pow(5e4, -19.0 / 32), 1, 1e-14);
  EXPECT_NEAR(speed(spectrum, 20) * 32 / std::pow(5e4, -20.0 / 32), 1, 1e-14);
}

void expect_same(const RopeConfig& a, const RopeConfig& b) {
  for (const int64_t length : {1, 4096, 4097, 200000}) {
    const Spectrum x = spectrum_of(a, length), y = spectrum_of(b, length);
    ASSERT_EQ(x.pairs.size(), y.pairs.size());
    for (size_t f = 0; f < x.pairs.size(); ++f) {
      EXPECT_EQ(x.pairs[f].speed.high, y.pairs[f].speed.high) << f;
      EXPECT_EQ(x.pairs[f].speed.low, y.pairs[f].speed.low) << f;
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

// GGUF holds numbers in float32: the base and the divisors.
void expect_close(const RopeConfig& a, const RopeConfig& b) {
  for (const int64_t length : {1, 4096, 4097, 200000}) {
    const Spectrum x = spectrum_of(a, length), y = spectrum_of(b, length);
    ASSERT_EQ(x.pairs.size(), y.pairs.size());
    for (size_t f = 0; f < x.pairs.size(); ++f) {
      EXPECT_NEAR(speed(x, f), speed(y, f), speed(x, f) * 0x1p-23) << f;
    }
    EXPECT_NEAR(x.gain, y.gain, 1e-6) << length;
  }
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_NEAR(a.scaling.score_factor, b.scaling.score_factor, 1e-6);
  EXPECT_EQ(a.scaling.sections, b.scaling.sections);
  EXPECT_EQ(explain(a, 0).trained, explain(b, 0).trained);
  EXPECT_EQ(explain(a, 0).target, explain(b, 0).target);
}

// The settings after they were written in a dialect and read again; nothing if it cannot say them.
std::optional<std::vector<RopeConfig>> there_and_back(const ReadRopeConfig& read,
                                                      const std::string& dialect) {
  std::string written;
  try {
    written = write_rope_config(read, dialect);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("convert: "));
    return {};
  }
  const RopeConfig& first = read.settings[0];
  // Flags do not say the size of heads.
  const bool flags = dialect == "llama.cpp" || dialect == "vllm";
  return read_rope_config_bytes(written, {.head_dim = flags ? first.head_dim : 0}).settings;
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
      // Only a whole configuration says windows and layers that do not rotate.
      const bool whole = std::string(dialect).starts_with("hf");
      const auto before = whole ? read.settings : distinct_rotations(read.settings);
      const auto after = whole ? *back : distinct_rotations(*back);
      ASSERT_EQ(after.size(), before.size());
      if (std::string(dialect) == "gguf") {
        for (size_t n = 0; n < after.size(); ++n) expect_close(before[n], after[n]);
        continue;
      }
      for (size_t n = 0; n < after.size(); ++n) {
        ASSERT_EQ(before[n].rotates, after[n].rotates);
        if (!before[n].rotates) continue;
        // Flags are read with one size of heads and say one length, for all layers.
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
  error_of("gemma-3", "llama.cpp", "convert: llama.cpp: expected one setting");
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
      "convert: llama.cpp: partial_rotary_factor: expected all 96 channels to turn, but got 24");
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
  const RopeConfig setting{.head_dim = 64, .rotary_dim = 64, .base = 1e7, .dual_chunk = 262144};
  for (const char* to : {"gguf", "llama.cpp"}) {
    EXPECT_THAT(
        [&] {
          write_rope_config({"", "", {setting}}, to);
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
      std::get<GgufArray>(written("qwen2_vl", "").at("qwen2vl.rope.dimension_sections")).numbers,
      sections);
  EXPECT_EQ(std::get<GgufArray>(
                written("qwen3_vl_text", interleaved).at("qwen3vl.rope.dimension_sections"))
                .numbers,
            sections);
  EXPECT_THAT([&] { written("qwen2_vl", interleaved); },
              ThrowsMessage<Error>(HasSubstr("mrope_section: expected none for the architecture")));
  EXPECT_THAT([&] { written("llama", ""); },
              ThrowsMessage<Error>(HasSubstr("mrope_section: expected none for the architecture")));
}

TEST(Convert, KeepsThePartOfEachTypeOfLayer) {
  const ReadRopeConfig read = read_rope_config_bytes(
      R"({"head_dim": 64, "partial_rotary_factor": 0.25, "rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5},
          "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}})",
      {});
  const auto back = read_rope_config_bytes(write_rope_config(read, "hf5"), {}).settings;
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

// Hugging Face and vLLM read int(head_dim * factor).
TEST(Convert, ThePartOfTheChannelsIsExact) {
  for (int64_t all = 2; all <= 128; all += 2) {
    for (int64_t some = 2; some <= all; some += 2) {
      const RopeConfig setting{.head_dim = all, .rotary_dim = some, .base = 1e4};
      const json config = write_hugging_face({}, {setting}, some % 4 == 0 ? 4 : 5);
      EXPECT_EQ(read_hugging_face(config).at(0).rotary_dim, some) << all;
    }
  }
}

// transformers 4: Phi3Config counts three fields, and the forward pass reads L beside them.
TEST(Convert, LongRopeIsWhatVersion4Reads) {
  const ReadRopeConfig read = read_rope_config_bytes(config("phi-3-128k"), {});
  const json four = json::parse(write_rope_config(read, "hf4"));
  EXPECT_EQ(four.at("original_max_position_embeddings"), 4096);
  EXPECT_EQ(four.at("rope_scaling").size(), 3u);
  EXPECT_EQ(four.at("rope_scaling").at("type"), "longrope");
}

// vLLM takes the factor of qk_rope_head_dim, and reads the model's own name of the type.
TEST(Convert, LatentAttentionTellsVllmItsSizes) {
  const ReadRopeConfig read = read_rope_config_bytes(config("deepseek-v3"), {});
  const std::string line = write_rope_config(read, "vllm");
  EXPECT_THAT(line, Not(HasSubstr("partial_rotary_factor")));
  const RopeConfig back = read_rope_config_bytes(line, {}).settings.at(0);
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

TEST(GgufFiles, AreReadAsLlamaCppMeansThem) {
  const auto of = [](const std::map<std::string, GgufValue>& metadata, const Overrides& overrides) {
    return read_gguf_config({.metadata = metadata, .tensors = {}, .vectors = {}}, overrides);
  };
  const auto whole = [](uint64_t n) { return GgufValue(n); };
  // Latent attention: key_length is the cache's.
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
  // Gemma 3: llama.cpp's code has the other base.
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

TEST(Flags, MeanWhatTheEnginesDo) {
  const auto of = [](const std::string& text) {
    return read_rope_config_bytes(text, {.base = 10000, .head_dim = 128}).settings.at(0);
  };
  const RopeConfig yarn = of(
      "llama-server --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 --rope-freq-base 1e6");
  EXPECT_EQ(std::get<Yarn>(std::get<Stretch>(yarn.scaling.stretch)).factor, 4);
  EXPECT_EQ(
      std::get<Linear>(std::get<Stretch>(of("--rope-freq-scale 0.25").scaling.stretch)).factor, 4);
  const RopeConfig vllm = of(
      R"(vllm --rope-scaling '{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}' --rope-theta 1e6)");
  EXPECT_EQ(std::get<Yarn>(std::get<Stretch>(vllm.scaling.stretch)).original_length, 32768);
  const auto error_of = [&](const std::string& text, const char* words) {
    EXPECT_THAT([&] { of(text); }, ThrowsMessage<Error>(HasSubstr(words)));
  };
  error_of("--rope-scale many", "flags: --rope-scale: expected a number");
  error_of("--rope-speed 4", "flags: --rope-speed: expected a flag");
  error_of("--rope-scaling warp", "flags: --rope-scaling: expected none, linear or yarn");
  error_of("--rope-scale 2 --rope-scale 3", "flags: --rope-scale: expected once");
  error_of("--rope-scale 0.5", "flags: --rope-scale: expected a number that makes frequencies 1");
  error_of("--rope-freq-base -10",
           "flags: --rope-freq-base: expected a number from 0, but got -10");
  error_of("--rope-scale 4 --yarn-orig-ctx 4096",
           "flags: --yarn-orig-ctx: expected --rope-scaling yarn beside it");
  error_of("--grp-attn-n 4 -gaw 1024", "flags: --grp-attn-n: expected 1");
  error_of("--override-kv llama.rope.freq_base=float:1e6",
           "flags: --override-kv: expected nothing");
  error_of("--max-model-len long", "flags: --max-model-len: expected a length like");
  error_of("--hf-overrides 4", "flags: --hf-overrides: expected an object");
  error_of("--rope-scale --ctx-size 4096", "flags: --rope-scale: expected a value, but got none");
  error_of("--rope-scale 4 yarn", "flags: expected a flag, but got \"yarn\"");
  EXPECT_THAT([] { read_rope_config_bytes("--rope-scale 4", {.head_dim = 128}); },
              ThrowsMessage<Error>(HasSubstr("flags: --rope-freq-base: expected the base")));
}

// As people paste them.
TEST(Flags, WholeCommandLinesAreRead) {
  const auto of = [](const std::string& text) {
    return read_rope_config_bytes(text, {.base = 1e6, .head_dim = 128}).settings.at(0);
  };
  const RopeConfig server =
      of("./llama-server -m /models/qwen2.5.gguf -c 131072 -ngl 99 -fa --rope-scaling yarn \\\n"
         "  --rope-scale 4 --yarn-orig-ctx 32768 --yarn-attn-factor -1 --temp 0.7 --host 0.0.0.0");
  EXPECT_EQ(std::get<Yarn>(std::get<Stretch>(server.scaling.stretch)).factor, 4);
  EXPECT_EQ(server.max_length, 131072);
  EXPECT_THAT(server.scaling.warnings,
              Contains(HasSubstr("passed over, as they are not about rotary positions: -m, -ngl, "
                                 "-fa, --temp, --host")));
  const RopeConfig vllm =
      of("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 128K "
         "--enable-prefix-caching --hf_overrides '{\"rope_scaling\": {\"rope_type\": \"yarn\", "
         "\"factor\": 4, \"original_max_position_embeddings\": 32768}}'");
  EXPECT_EQ(vllm.max_length, 131072);
  EXPECT_EQ(std::get<Yarn>(std::get<Stretch>(vllm.scaling.stretch)).original_length, 32768);
}

TEST(Flags, ShortOnesAloneAreFlagsToo) {
  EXPECT_EQ(read_rope_config_bytes("-c 4096", {.base = 1e4, .head_dim = 64}).dialect, "flags");
  EXPECT_THAT([] { read_rope_config_bytes("-1 words", {}); },
              ThrowsMessage<Error>(HasSubstr("expected a config.json, a GGUF file or flags")));
}

// The context is what is read, not what was trained on.
TEST(Flags, InterpolationDividesTheContext) {
  const RopeConfig linear =
      read_rope_config_bytes("--rope-scale 4 -c 16384", {.base = 1e4, .head_dim = 128})
          .settings.at(0);
  EXPECT_EQ(explain(linear, 0).trained, 4096);
  EXPECT_EQ(explain(linear, 0).target, 16384);
}

TEST(Flags, VllmsNameOfTheGainIsRead) {
  const RopeConfig setting =
      read_rope_config_bytes(
          R"(--hf-overrides '{"head_dim": 64, "rope_parameters": {"rope_type": "yarn",
          "rope_theta": 1e4, "factor": 4, "original_max_position_embeddings": 4096,
          "attn_factor": 2}}')",
          {})
          .settings.at(0);
  EXPECT_NEAR(spectrum_of(setting, 1).gain, 2 * (0.1 * std::log(4) + 1), 1e-15);
}

struct Wrong {
  const char* config;
  const char* words;
};

TEST(Config, ErrorsNameTheKey) {
  const Wrong all[] = {
      {R"({"head_dim": 64})", "rope_theta: expected the base"},
      {R"({"head_dim": 63, "rope_theta": 1e4})", "head_dim: expected an even number"},
      {R"({"head_dim": 64, "rope_theta": 0})", "rope_theta: expected a number from"},
      {R"({"head_dim": 64, "rope_theta": "1e4"})", "rope_theta: expected a number from"},
      {R"({"head_dim": 64, "rope_theta": NaN})",
       "rope_theta: expected a number from 0.001 to 1e+30, but got \"NaN (no JSON)\""},
      {R"({"head_dim": 64, "rope_theta": 1e400})", "expected JSON"},
      {R"({"head_dim": 64, "rope_theta": 1e4, "rope_speed": 2})",
       "\"rope_speed\": expected no field"},
      {R"({"rope_theta": 1e4})", "head_dim: expected an integer"},
      {R"({"head_dim": 64, "rope_theta": 1e4, "partial_rotary_factor": 1.1})",
       "partial_rotary_factor: expected a number from"},
      {R"({"head_dim": 64, "rope_theta": 1e4, "partial_rotary_factor": 0.05})",
       "partial_rotary_factor: expected an even number"},
      {R"({"head_dim": 128, "rotary_dim": 256, "rope_theta": 1e4})",
       "rotary_dim: expected at most the 128 channels"},
      {R"({"head_dim": 64, "rope_theta": 1e4, "num_attention_heads": 32, "num_key_value_heads": 5})",
       "num_key_value_heads: expected a divisor of num_attention_heads, 32"},
      {R"({"head_dim": 64, "rope_theta": 1e4, "sliding_window": -3})",
       "sliding_window: expected an integer from 0"},
      {R"({"head_dim": 64, "rope_theta": 1e4, "outer_head_dim": 128})",
       "\"outer_head_dim\": expected no field"},
      {R"({"head_dim": 128, "rope_theta": 1e4, "rope_scaling": {"type": "mrope",
           "mrope_section": [16, 24, 25]}})",
       "mrope_section: expected pairs of each axis, 64 in all, but got [16,24,25]"},
  };
  for (const auto& [config, words] : all) {
    EXPECT_THAT([&] { read_rope_config_bytes(config, {}); }, ThrowsMessage<Error>(HasSubstr(words)))
        << config;
  }
}

TEST(Config, IsReadAsWritten) {
  const std::string plain = R"({"head_dim": 64, "rope_theta": 1e4})";
  EXPECT_EQ(read_rope_config_bytes("\xEF\xBB\xBF" + plain, {}).settings.at(0).base, 10000);
  EXPECT_THAT(
      [] { read_rope_config_bytes(R"({"head_dim": 64, "rope_theta": 1, "rope_theta": 2})", {}); },
      ThrowsMessage<Error>(HasSubstr("config.json: \"rope_theta\": expected once")));
  EXPECT_EQ(read_rope_config_bytes(R"({"head_dim": 64, "rope_parameters": {
      "full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}})",
                                   {})
                .settings.size(),
            2U)
      << "keys may repeat in different objects";
  const auto error_of = [&](const Overrides& overrides, const char* words) {
    EXPECT_THAT([&] { read_rope_config_bytes(plain, overrides); },
                ThrowsMessage<Error>(HasSubstr(words)));
  };
  error_of({.base = NAN}, "--base: expected a number from");
  error_of({.base = -5}, "--base: expected a number from");
  error_of({.base = 1e40}, "--base: expected a number from");
  error_of({.head_dim = -8}, "--head-dim: expected a number from");
  error_of({.length = -4}, "--length: expected a number from");
  error_of({.local_base = -1}, "--local-base: expected a number from");
}

TEST(Scaling, ErrorsNameTheKey) {
  const Wrong all[] = {
      {R"({"type": "linear"})", "factor: expected a number from 1"},
      {R"({"type": "linear", "factor": 0.5})", "factor: expected a number from 1"},
      {R"({"type": "linear", "factor": 1e30})", "factor: expected a number from 1"},
      {R"({"type": "linear", "factor": "4"})", "factor: expected a number from 1"},
      {R"({"factor": 4})", "rope_type: expected the name of a scaling"},
      {R"({"type": "warp", "factor": 4})", "type: expected one of"},
      {R"({"type": "linear", "factor": 4, "beta_fast": 32})", "\"beta_fast\": expected a field"},
      {R"({"type": "yarn", "factor": 4, "original_max_position_embeddings": 0})",
       "original_max_position_embeddings: expected an integer from 1"},
      {R"({"type": "yarn", "factor": 4, "beta_fast": 0})", "beta_fast: expected"},
      {R"({"type": "yarn", "factor": 4, "truncate": 1})", "truncate: expected true or false"},
      {R"({"type": "llama3", "factor": 8, "original_max_position_embeddings": 8192})",
       "low_freq_factor: expected a number"},
      {R"({"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4})",
       "original_max_position_embeddings: expected the length"},
      {R"({"type": "longrope", "original_max_position_embeddings": 64, "factor": 2,
           "short_factor": [1], "long_factor": [1, 2]})",
       "short_factor: expected a number for each of 2 pairs"},
      {R"({"type": "longrope", "original_max_position_embeddings": 64, "factor": 2,
           "short_factor": [1, 0], "long_factor": [1, 2]})",
       "short_factor: expected numbers from"},
      {R"([4])", "rope_scaling: expected an object"},
  };
  for (const auto& [scaling, words] : all) {
    const std::string config =
        R"({"head_dim": 4, "rope_theta": 1e4, "max_position_embeddings": 4096, "rope_scaling": )" +
        std::string(scaling) + "}";
    EXPECT_THAT([&] { read_rope_config_bytes(config, {}); }, ThrowsMessage<Error>(HasSubstr(words)))
        << scaling;
  }
}

TEST(Scaling, WarnsOfWhatEnginesReadDifferently) {
  const auto warnings = [](const std::string& scaling) {
    const std::string config =
        R"({"head_dim": 64, "rope_theta": 1e4, "max_position_embeddings": 8192, "rope_scaling": )" +
        scaling + "}";
    return read_rope_config_bytes(config, {}).settings[0].scaling.warnings;
  };
  EXPECT_THAT(warnings(R"({"type": "linear", "factor": 2})"), IsEmpty());
  EXPECT_THAT(warnings(R"({"type": "yarn", "factor": 2})"),
              Contains(HasSubstr("original_max_position_embeddings is missing")));
  EXPECT_THAT(warnings(R"({"type": "yarn", "factor": 2, "original_max_position_embeddings": 4096,
                           "attention_factor": 1.1, "mscale": 1})"),
              Contains(HasSubstr("attention_factor and mscale")));
  EXPECT_THAT(warnings(R"({"type": "yarn", "factor": 2, "original_max_position_embeddings": 4096,
                           "beta_fast": 1, "beta_slow": 32})"),
              Contains(HasSubstr("swapped")));
  EXPECT_THAT(setting("gpt-oss").scaling.warnings, Contains(HasSubstr("truncate is false")));
  EXPECT_THAT(setting("deepseek-v3").scaling.warnings, Contains(HasSubstr("deepseek_v2")));
  EXPECT_THAT(setting("internlm2").scaling.warnings,
              Not(Contains(HasSubstr("original_max_position_embeddings is missing"))));
}

TEST(Explained, SaysWhereEachPairLeavesWhatTrainingShowed) {
  // YaRN by 4 on 32768: the slowest pair is at new angles beyond 4 * 32768 only.
  const Explained yarn = explain(setting("qwen2.5-7b-yarn"), 0);
  EXPECT_EQ(yarn.trained, 32768);
  EXPECT_EQ(yarn.target, 131072);
  EXPECT_EQ(yarn.pairs[0].leaves, 0);
  EXPECT_NEAR(static_cast<double>(yarn.pairs[63].leaves), 4.0 * 32767 + 1, 1);
  EXPECT_EQ(yarn.pairs[0].kept, 1);
  EXPECT_EQ(yarn.pairs[63].kept, 0);
  EXPECT_NEAR(yarn.turned_scale, std::pow(0.1 * std::log(4) + 1, 2) / std::sqrt(128), 1e-15);
  // Plain: beyond what it was trained on.
  const Explained plain = explain(setting("codellama-7b"), 65536);
  EXPECT_EQ(plain.first_leaving, 16384);
  // float32 at 131072: 4e-3 and more (rotary.md 6.1).
  EXPECT_GT(yarn.float32_error, 1e-3);
  EXPECT_LT(yarn.float32_error, 1e-2);
}

TEST(Explained, SeesNoFurtherThanTheWindow) {
  // The slowest pair of base 1e4 is new from 32768 on, but no query sees so far.
  const Explained window = explain(setting("mistral-7b"), 65536);
  EXPECT_EQ(window.reach, 4095);
  EXPECT_EQ(window.first_leaving, 0);
  EXPECT_EQ(explain(setting("gpt-oss"), 0).reach, 0) << "every second layer sees all";
  EXPECT_EQ(explain(setting("qwen2.5-7b-1m"), 1000000).reach, 262144);
}

TEST(Explained, SaysWhatTheMethodIsGiven) {
  const json yarn = parameters_of(setting("qwen2.5-7b-yarn"));
  EXPECT_EQ(yarn.at("beta_fast"), 32) << "which the file does not say";
  EXPECT_EQ(yarn.at("beta_slow"), 1);
  EXPECT_EQ(yarn.at("truncate"), true);
  EXPECT_EQ(yarn.at("factor"), 4);
  EXPECT_EQ(parameters_of(setting("phi-3-128k")).at("long_factor").size(), 4U);
  EXPECT_EQ(law_of(setting("qwen-1").scaling.query_scale), "max(1, ln(i + 1) / ln 8192)");
  EXPECT_EQ(law_of(setting("ministral-3").scaling.query_scale), "1 + 0.1 ln(1 + floor(i / 16384))");
  EXPECT_EQ(name_of(setting("qwen3-vl-8b").scaling).name, "M-RoPE");
  const Explained blocks = explain(setting("qwen2-vl"), 0);
  EXPECT_EQ(blocks.pairs[15].axis, 0);
  EXPECT_EQ(blocks.pairs[16].axis, 1);
  EXPECT_EQ(blocks.pairs[63].axis, 2);
  const Explained woven = explain(setting("qwen3-vl-8b"), 0);
  EXPECT_EQ(woven.pairs[1].axis, 1);
  EXPECT_EQ(woven.pairs[2].axis, 2);
  EXPECT_EQ(woven.pairs[63].axis, 0);
  // LongRoPE's factor is for texts beyond L only.
  EXPECT_EQ(explain(setting("phi-3-128k"), 2000).factor, 1.25);
  EXPECT_EQ(explain(setting("phi-3-128k"), 5000).factor, 32);
}

}  // namespace
}  // namespace sextant::testing
