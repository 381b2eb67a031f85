// The windows of GGUF files by llama.cpp's types of windows, and methods by the size of a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/rope_config/compare_configs.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/write_config.h"
#include "tests/rope_config/gguf_files.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

ReadRopeConfig windowed(const std::string& arch, uint64_t window, uint64_t layers = 12) {
  return read_gguf(arch, {{"attention.sliding_window", window}, {"block_count", layers}});
}

// The group of layers with a window or chunks.
const RopeConfig& local(const ReadRopeConfig& read) {
  const auto found = std::ranges::find_if(
      read.configs, [](const RopeConfig& group) { return group.window > 0 || group.chunk > 0; });
  if (found == read.configs.end()) throw Error("no layer has a window");
  return *found;
}

ReadRopeConfig model(const json& config) { return read_rope_config_bytes(config.dump(), {}); }

const json kModernBert = {{"model_type", "modernbert"},      {"hidden_size", 768},
                          {"num_attention_heads", 12},       {"num_hidden_layers", 22},
                          {"max_position_embeddings", 8192}, {"local_attention", 128},
                          {"global_rope_theta", 160000.0},   {"local_rope_theta", 10000.0}};
const json kEmbeddingGemma = {
    {"model_type", "gemma3_text"}, {"use_bidirectional_attention", true}, {"head_dim", 256},
    {"num_hidden_layers", 24},     {"max_position_embeddings", 2048},     {"sliding_window", 512},
    {"query_pre_attn_scalar", 256}};

TEST(GgufWindows, OfBothSidesAreHalved) {
  for (const auto& [arch, layers] : {std::pair{"modern-bert", 22}, {"gemma-embedding", 24}}) {
    const ReadRopeConfig read = windowed(arch, 128, static_cast<uint64_t>(layers));
    EXPECT_TRUE(local(read).both_sides) << arch;
    EXPECT_EQ(local(read).window, 65) << arch;
    EXPECT_EQ(largest_distance(local(read)), 64) << arch;
    EXPECT_EQ(windowed(arch, 129).configs.back().window, 65) << "llama.cpp rounds down";
  }
  const ReadRopeConfig gemma = windowed("gemma3", 128);
  EXPECT_FALSE(local(gemma).both_sides);
  EXPECT_EQ(local(gemma).window, 128);
}

// Every row says one of the three types of windows, and only two are to both sides.
TEST(GgufWindows, OfEachArchitectureAreOfOneType) {
  std::vector<std::string> both, chunks;
  for (const char* arch :
       {"llama4", "modern-bert", "gemma-embedding", "gemma2", "gemma3", "gemma3n", "gemma4",
        "cohere2", "olmo2", "gpt-oss", "exaone4", "smallthinker", "plamo3", "laguna", "lfm2"}) {
    const LlamaCppArchitecture* row = find_architecture(arch);
    ASSERT_TRUE(row && row->window) << arch;
    if (row->window->both_sides) both.emplace_back(arch);
    if (row->window->chunks) chunks.emplace_back(arch);
  }
  EXPECT_EQ(both, (std::vector<std::string>{"modern-bert", "gemma-embedding"}));
  EXPECT_EQ(chunks, std::vector<std::string>{"llama4"});
}

TEST(GgufWindows, WhoseSizeIsInTheCodeIgnoreThatOfTheFile) {
  const RopeConfig scout = local(windowed("llama4", 4096));
  EXPECT_EQ(scout.chunk, 8192);
  EXPECT_THAT(scout.notes, Contains(HasSubstr("sliding_window is 4096 in the file")));
  EXPECT_EQ(local(windowed("smallthinker", 2048)).window, 4096);
  EXPECT_THAT(windowed("llama4", 0).configs,
              Not(Contains(::testing::Field(&RopeConfig::chunk, 8192))));
  const ReadRopeConfig phi = windowed("phi3", 2047);
  EXPECT_EQ(phi.configs.at(0).window, 0);
  EXPECT_THAT(phi.configs.at(0).notes, Contains(HasSubstr("has no window there")));
}

TEST(GgufWindows, OfLaguna1stLayerAndLfm2) {
  const ReadRopeConfig laguna = read_gguf("laguna", {{"attention.sliding_window", uint64_t{512}},
                                                     {"block_count", uint64_t{8}},
                                                     {"rope.freq_base_swa", 5e4}});
  EXPECT_EQ(local(laguna).layer_numbers, (std::vector<int64_t>{1, 2, 3, 5, 6, 7}));
  const ReadRopeConfig lfm = windowed("lfm2", 512, 8);
  EXPECT_EQ(lfm.configs.size(), 1U);
  EXPECT_EQ(local(lfm).window, 512);
  EXPECT_EQ(local(lfm).base, 1e6);
}

TEST(GgufWindows, AreWrittenAsLlamaCppReadsThem) {
  const auto written = [](const json& config, const std::string& arch) {
    const std::string bytes = write_rope_config(model(config), "gguf");
    const Gguf gguf = parse_gguf(bytes);
    EXPECT_EQ(std::get<std::string>(gguf.metadata.at("general.architecture")), arch);
    const ConfigComparison same = compare_configs(model(config), read_rope_config_bytes(bytes, {}));
    EXPECT_THAT(same.findings, IsEmpty()) << arch;
    return std::get<uint64_t>(gguf.metadata.at(arch + ".attention.sliding_window"));
  };
  EXPECT_EQ(written(kModernBert, "modern-bert"), 128U);
  EXPECT_EQ(written(kEmbeddingGemma, "gemma-embedding"), 512U);
  json causal = kEmbeddingGemma;
  causal["use_bidirectional_attention"] = false;
  EXPECT_EQ(written(causal, "gemma3"), 512U);
}

TEST(GgufWindows, ThatLlamaCppDoesNotHaveAreRefusedOrSaid) {
  EXPECT_THAT(
      [] {
        write_rope_config(model({{"model_type", "gemma4_text"},
                                 {"use_bidirectional_attention", "all"},
                                 {"hidden_size", 2304},
                                 {"num_attention_heads", 8},
                                 {"num_hidden_layers", 6},
                                 {"sliding_window", 512}}),
                          "gguf");
      },
      ThrowsMessage<Error>(HasSubstr("window: expected one that reaches back only, as llama.cpp's "
                                     "code for gemma4 has it, but got one that reaches to both")));
  std::vector<std::string> warnings;
  write_rope_config(model({{"model_type", "mistral"},
                           {"head_dim", 128},
                           {"num_hidden_layers", 4},
                           {"sliding_window", 4096},
                           {"rope_theta", 1e4}}),
                    "gguf", warnings);
  EXPECT_THAT(warnings, Contains(HasSubstr("see 4096 keys, and llama.cpp")));
}

TEST(GgufWindows, OfOtherSidesAreADifference) {
  const ConfigComparison sides =
      compare_configs(model(kEmbeddingGemma), windowed("gemma3", 512, 24));
  const auto window = std::ranges::find(sides.findings, "window", &ConfigFinding::field);
  ASSERT_NE(window, sides.findings.end());
  EXPECT_EQ(window->expected, "256 keys to each side");
  EXPECT_EQ(window->got, "512 keys");
}

TEST(GgufMethods, AreByTheNumberOfLayers) {
  const auto baichuan = [](uint64_t layers) {
    return read_gguf("baichuan", {{"block_count", layers}}).configs.at(0);
  };
  EXPECT_TRUE(baichuan(32).rotates);
  EXPECT_FALSE(baichuan(40).rotates);
  EXPECT_EQ(baichuan(40).instead, "alibi");
  EXPECT_EQ(baichuan(48).instead, "none");
  EXPECT_THAT(baichuan(40).notes, Contains(HasSubstr("by the number of layers")));
  EXPECT_TRUE(read_gguf("baichuan", {}).configs.at(0).rotates);
}

TEST(GgufMethods, AreByAnOptionalKeyOrTensor) {
  for (const char* arch : {"mpt", "jais"}) {
    const auto method = [&](const Metadata& keys, const Tensors& tensors = {}) {
      return read_gguf(arch, keys, tensors).configs.at(0).instead;
    };
    EXPECT_EQ(method({{"attention.max_alibi_bias", 8.0}}), "alibi");
    EXPECT_EQ(method({{"attention.max_alibi_bias", 0.0}}), "none");
    EXPECT_EQ(method({}), "none");
  }
  const Tensors learned = {{"position_embd.weight", {1, 2}}};
  EXPECT_EQ(read_gguf("mpt", {}, learned).configs.at(0).instead, "learned");
  EXPECT_EQ(read_gguf("bloom", {}).configs.at(0).instead, "alibi");
  const json mpt = {{"model_type", "mpt"}, {"d_model", 2048}, {"n_heads", 16}, {"n_layers", 24}};
  const ConfigComparison other = compare_configs(model(mpt), read_gguf("mpt", {}));
  ASSERT_EQ(other.findings.size(), 1U);
  EXPECT_EQ(other.findings[0].field, "positions");
  EXPECT_EQ(other.findings[0].expected, "alibi");
  EXPECT_EQ(other.findings[0].got, "NoPE");
  EXPECT_THAT(
      compare_configs(model(mpt), read_gguf("mpt", {{"attention.max_alibi_bias", 8.0}})).findings,
      IsEmpty());
}

ReadRopeConfig without_base(const std::string& arch, const Overrides& overrides = {},
                            const Metadata& more = {}) {
  Metadata all = {{"general.architecture", arch}, {arch + ".attention.key_length", uint64_t{128}}};
  for (const auto& [key, value] : more) all[arch + "." + key] = value;
  return read_rope_config_bytes(gguf_bytes(all, {}), overrides);
}

TEST(GgufBase, IsThatOfTheCodeIfItIsMissing) {
  for (const char* arch : {"gemma", "gemma2", "falcon", "phi2", "gptneox", "stablelm", "llama"}) {
    const RopeConfig rope = without_base(arch).configs.at(0);
    EXPECT_EQ(rope.base, 10000) << arch;
    EXPECT_THAT(rope.notes, Contains(HasSubstr("llama.cpp takes 10000 then"))) << arch;
    EXPECT_EQ(without_base(arch, {.base = 5e5}).configs.at(0).base, 5e5);
  }
  EXPECT_EQ(without_base("llama", {.base = 5e5, .only_missing = true}).configs.at(0).base, 5e5);
  EXPECT_EQ(without_base("llama", {.base = 5e5, .only_missing = true}, {{"rope.freq_base", 1e6}})
                .configs.at(0)
                .base,
            1e6);
}

TEST(GgufFilesOfOtherPrograms, AreRefusedByName) {
  const auto error_of = [](const std::string& arch, const Metadata& keys, const char* words) {
    EXPECT_THAT([&] { read_gguf(arch, keys); }, ThrowsMessage<Error>(HasSubstr(words))) << arch;
  };
  error_of("gptoss", {},
           "expected an architecture of llama.cpp, but got \"gptoss\", a type of model that Ollama "
           "writes for its own engine (gpt-oss in llama.cpp): give the model's config.json");
  error_of("mllama", {}, "but got \"mllama\", a type of model that Ollama writes");
  error_of("qwen25vl", {{"rope.mrope_section", GgufArray{.numbers = {16, 24, 24}, .count = 3}}},
           "with keys of its own (qwen25vl.rope.mrope_section)");
  error_of("mistral3", {{"rope.scaling.beta_fast", 32.0}, {"rope.scaling_beta", 0.1}},
           "mistral3.rope.scaling.beta_fast, mistral3.rope.scaling_beta: expected keys of "
           "llama.cpp, but got keys that Ollama writes");
  error_of("gemma3", {{"rope.global.freq_base", 1e6}, {"rope.local.freq_base", 1e4}},
           "gemma3.rope.global.freq_base, gemma3.rope.local.freq_base: expected keys of llama.cpp");
  error_of("flux", {}, "ComfyUI-GGUF");
  EXPECT_NO_THROW(read_gguf("gpt-oss", {}));
  EXPECT_NO_THROW(read_gguf("mistral3", {{"rope.scaling.yarn_beta_fast", 32.0}}));
}

// Ollama takes 1e6 for Gemma 3 without a base.
TEST(GgufFilesOfOtherPrograms, MayLackABase) {
  EXPECT_THAT([] { without_base("gemma3"); },
              ThrowsMessage<Error>(HasSubstr("Ollama takes 1000000.0, and llama.cpp would take "
                                             "10000: give --base, or the model's config.json")));
  EXPECT_EQ(without_base("gemma3", {.base = 1e6}).configs.at(0).base, 1e6);
}

}  // namespace
}  // namespace sextant::testing
