// Regressions from an acceptance test of explain: files that were explained wrong, refused, or
// accepted silently. The expected values are transformers 5.24's, by its formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/position/stretch/yarn.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/hugging_face.h"
#include "tests/rope_config/config_files.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

// The first configuration of a file of this type with 128 channels per head and the fields of
// `more`.
RopeConfig first(const std::string& type, const json& more, const Overrides& overrides = {}) {
  json config = {{"model_type", type},
                 {"hidden_size", 4096},
                 {"num_attention_heads", 32},
                 {"max_position_embeddings", 131072}};
  config.update(more);
  return read(config, overrides).at(0);
}

std::vector<std::string> warnings(const std::string& type, const json& more) {
  return first(type, more).scaling.warnings;
}

double gain(const RopeConfig& rope) { return explain(rope, 0).gain; }

const json kYarn = {
    {"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 32768}};

json lists(const json& more) {
  return with(
      {{"short_factor", std::vector<double>(48, 1)}, {"long_factor", std::vector<double>(48, 1.5)}},
      more);
}

TEST(Acceptance, RopeScalingGoesBeforeRopeParameters) {
  const json both = {{"rope_scaling", kYarn},
                     {"rope_parameters", with(kYarn, {{"rope_theta", 1e6}})}};
  const RopeConfig lost = first("qwen3", both);
  EXPECT_EQ(lost.base, 1e4);
  EXPECT_THAT(lost.scaling.warnings,
              Contains(AllOf(HasSubstr("\"rope_theta\" is missing in rope_scaling"),
                             HasSubstr("rope_scaling is taken"))));
  EXPECT_EQ(first("qwen3", with(both, {{"rope_theta", 1e4}})).base, 1e4);
  const RopeConfig alike = first("qwen3", with(both, {{"rope_theta", 1e6}}));
  EXPECT_EQ(alike.base, 1e6);
  EXPECT_THAT(alike.scaling.warnings, IsEmpty());

  const json part = {{"rope_theta", 1e4}, {"partial_rotary_factor", 0.5}};
  EXPECT_EQ(first("stablelm", {{"hidden_size", 2048},
                               {"rope_theta", 1e4},
                               {"rope_scaling", kYarn},
                               {"rope_parameters", with(kYarn, part)}})
                .rotary_dim,
            16);
  EXPECT_EQ(first("qwen2", {{"rope_theta", 1e6},
                            {"rope_scaling", kYarn},
                            {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e6}}}})
                .scaling.type,
            "yarn");
}

TEST(Acceptance, TheOuterOriginalLengthGoesFirst) {
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 32},
                       {"low_freq_factor", 1},
                       {"high_freq_factor", 4},
                       {"original_max_position_embeddings", 8192}};
  const json outer = {{"original_max_position_embeddings", 32768}};
  const RopeConfig llama = first(
      "llama", with({{"rope_theta", 5e5}, {"head_dim", 64}, {"rope_scaling", llama3}}, outer));
  EXPECT_EQ(llama.scaling.original_length, 32768);
  EXPECT_NEAR(frequency(llama, 16), 1.414e-3, 1e-6);
  EXPECT_THAT(llama.scaling.warnings,
              Contains(HasSubstr("is 8192 in the scaling and 32768 beside")));

  const json half = {{"original_max_position_embeddings", 16384}};
  const RopeConfig yarn = first("qwen2", with({{"rope_scaling", kYarn}}, half));
  EXPECT_EQ(yarn.scaling.original_length, 16384);
}

TEST(Acceptance, Phi3HasItsOriginalLengthInItsCode) {
  const json inner = {{"type", "longrope"}, {"original_max_position_embeddings", 8192}};
  const json sizes = {{"hidden_size", 3072}};
  const RopeConfig phi = first("phi3", with(sizes, {{"rope_scaling", lists(inner)}}));
  EXPECT_EQ(phi.scaling.original_length, 4096);
  EXPECT_NEAR(gain(phi), std::sqrt(1 + std::log(32) / std::log(4096)), 1e-12);
  EXPECT_THAT(phi.scaling.warnings, Contains(HasSubstr("4096 in its type's code")));

  const json config = {{"model_type", "phi3"},
                       {"hidden_size", 3072},
                       {"num_attention_heads", 32},
                       {"max_position_embeddings", 131072},
                       {"original_max_position_embeddings", 8192},
                       {"rope_scaling", lists({{"type", "longrope"}})}};
  const json written = write_hugging_face(config, read(config), 5);
  EXPECT_EQ(written.value("original_max_position_embeddings", 0), 8192);
  EXPECT_EQ(read(written).at(0).scaling.original_length, 8192);
}

TEST(Acceptance, Phi3TakesYarnForLongRope) {
  const json sizes = {{"hidden_size", 3072}, {"original_max_position_embeddings", 4096}};
  const RopeConfig phi = first("phi3", with(sizes, {{"rope_scaling", lists({{"type", "yarn"}})}}));
  EXPECT_EQ(phi.scaling.type, "longrope");
  EXPECT_NEAR(gain(phi), 1.1902, 1e-4);
  EXPECT_THAT(
      [&] {
        first("phi3", with(sizes, {{"rope_scaling", kYarn}}));
      },
      ThrowsMessage<Error>(
          AllOf(HasSubstr("takes for \"longrope\""), HasSubstr("short_factor: expected"))));
}

TEST(Acceptance, AttnFactorIsNoWordOfTransformers) {
  const RopeConfig yarn = first("qwen2", {{"rope_scaling", with(kYarn, {{"attn_factor", 1.5}})}});
  EXPECT_NEAR(gain(yarn), 0.1 * std::log(4) + 1, 1e-12);
  EXPECT_THAT(yarn.scaling.warnings, Contains(HasSubstr("attn_factor is not transformers'")));
  EXPECT_THAT(warnings("qwen2", {{"rope_scaling",
                                  with(kYarn, {{"attn_factor", 1}, {"extrapolation_factor", 1}})}}),
              IsEmpty());
  EXPECT_THAT(warnings("qwen2", {{"rope_scaling", with(kYarn, {{"apply_yarn_scaling", false}})}}),
              Contains(HasSubstr("apply_yarn_scaling has no effect in transformers")));
}

TEST(Acceptance, AFileGoesBeforeItsTypesRow) {
  const RopeConfig jina =
      first("xlm-roberta", {{"position_embedding_type", "rotary"}, {"rotary_emb_base", 2e4}});
  EXPECT_TRUE(jina.rotates);
  EXPECT_EQ(jina.base, 2e4);
  EXPECT_THAT(jina.scaling.warnings,
              Contains(AllOf(HasSubstr("xlm-roberta"), HasSubstr("learned"), HasSubstr("rotary"))));
  EXPECT_EQ(method_of(first("bert", {{"position_embedding_type", "alibi"}})), "alibi");
  EXPECT_EQ(method_of(first("bert", {{"position_embedding_type", "absolute"}})), "learned");
  const RopeConfig grok =
      first("git", {{"rope_theta", 208533496}, {"rope_type", "original"}, {"head_dim", 128}});
  EXPECT_TRUE(grok.rotates);
  EXPECT_EQ(grok.base, 208533496);
  EXPECT_THROW(first("git", {{"rope_theta", 208533496}, {"rope_type", "yarn"}}), Error);
  const RopeConfig mpt =
      first("mpt", {{"attn_config", {{"rope", true}, {"rope_theta", 1e4}, {"alibi", false}}}});
  EXPECT_TRUE(mpt.rotates);
  EXPECT_EQ(mpt.base, 1e4);
  // Code that is known not to rotate ignores the fields of the file.
  const RopeConfig nemotron = first("nemotron_h", {{"rope_theta", 1e4}});
  EXPECT_FALSE(nemotron.rotates);
  EXPECT_THAT(nemotron.scaling.warnings, Contains(HasSubstr("which that code does not read")));
}

TEST(Acceptance, FieldsInAnotherPlaceAreNamed) {
  const json text = {{"model_type", "qwen3_5_text"},
                     {"hidden_size", 4096},
                     {"head_dim", 256},
                     {"num_attention_heads", 16},
                     {"rope_theta", 1e7}};
  const json whole = {{"model_type", "qwen3_5"}, {"text_config", text}};
  EXPECT_THAT(read(whole).at(0).scaling.warnings, IsEmpty());
  const RopeConfig idle = read(with(whole, {{"rope_scaling", kYarn}, {"rope_theta", 1e7}})).at(0);
  EXPECT_EQ(idle.scaling.type, "default");
  EXPECT_THAT(idle.scaling.warnings,
              ElementsAre(AllOf(HasSubstr("rope_scaling"), HasSubstr("outside \"text_config\""),
                                Not(HasSubstr("rope_theta 1")))));
  EXPECT_THAT(warnings("foo", {{"rope_theta", 1e4}, {"text_config", {{"rope_theta", 1e6}}}}),
              Contains(HasSubstr("text_config.rope_theta 1000000.0: not read")));
}

TEST(Acceptance, OptionsReplaceFieldsWithAWord) {
  const json file = {{"rope_theta", 1e4}, {"head_dim", 128}};
  const RopeConfig based = first("llama", file, {.base = 1e6});
  EXPECT_EQ(based.base, 1e6);
  EXPECT_THAT(based.scaling.warnings,
              ElementsAre("--base 1000000 is taken in place of the file's rope_theta 10000.0"));
  EXPECT_THAT(first("llama", file, {.head_dim = 64}).scaling.warnings,
              ElementsAre("--head-dim 64 is taken in place of the file's head_dim 128"));
  EXPECT_THAT(first("llama", file, {.base = 1e4, .head_dim = 128}).scaling.warnings, IsEmpty());
}

TEST(Acceptance, GptNeoXReadsThetaInsideOnly) {
  const json scaling = {{"type", "linear"}, {"factor", 4}, {"rope_theta", 5e5}};
  const RopeConfig inside = first("gpt_neox", {{"rope_scaling", scaling}});
  EXPECT_NEAR(frequency(inside, 1), std::pow(5e5, -1.0 / 16) / 4, 1e-12);
  const RopeConfig outside =
      first("gpt_neox", {{"rope_theta", 5e5}, {"rope_parameters", {{"rope_type", "default"}}}});
  EXPECT_EQ(outside.base, 1e4);
  EXPECT_THAT(outside.scaling.warnings, ElementsAre(HasSubstr("rope_theta is 500000.0 beside")));
  EXPECT_EQ(first("gpt_neox", {{"rope_theta", 25000}, {"rotary_emb_base", 1e4}}).base, 1e4);
  EXPECT_EQ(first("gpt_neox", {{"rotary_emb_base", 2e4}, {"rotary_pct", 1}}).rotary_dim, 128);
}

TEST(Acceptance, SectionsOfTheCode) {
  const RopeConfig qwen = first("qwen2_5_vl", {{"rope_theta", 1e6}, {"rope_scaling", kYarn}});
  EXPECT_THAT(qwen.scaling.sections, ElementsAre(16, 24, 24));
  EXPECT_FALSE(qwen.scaling.interleaved_sections);
  const RopeConfig newer = first("qwen3_vl_text", {{"rope_theta", 5e6}});
  EXPECT_THAT(newer.scaling.sections, ElementsAre(24, 20, 20));
  EXPECT_TRUE(newer.scaling.interleaved_sections);
  const RopeConfig odd = first("qwen2_vl", {{"hidden_size", 2560}, {"rope_theta", 1e6}});
  EXPECT_THAT(odd.scaling.sections, IsEmpty());
  EXPECT_THAT(odd.scaling.warnings, Contains(HasSubstr("does not sum to 40 pairs")));
}

TEST(Acceptance, NtkNamesTheOtherFormula) {
  const json ntk = {{"type", "ntk"}, {"factor", 2}};
  EXPECT_THAT(warnings("qwen2", {{"rope_scaling", ntk}}),
              Contains(HasSubstr("rope_type ntk: vLLM")));
  const RopeConfig mixed = first("qwen2", {{"rope_scaling", with(ntk, {{"mixed_b", 1}})}});
  EXPECT_NEAR(frequency(mixed, 0), std::pow(2, -2.0 / 128), 1e-14);
}

TEST(Acceptance, ListsByLayerAreLongEnough) {
  const json short_list = {{"num_hidden_layers", 36},
                           {"layer_types", std::vector<std::string>(8, "full_attention")}};
  EXPECT_THAT([&] { first("qwen3", short_list); },
              ThrowsMessage<Error>(HasSubstr(
                  "layer_types: expected a list with a kind for each of num_hidden_layers 36")));
  EXPECT_THAT(
      [&] {
        first("smollm3", {{"num_hidden_layers", 8}, {"no_rope_layers", {1, 1, 1, 0}}});
      },
      ThrowsMessage<Error>(HasSubstr("no_rope_layers: expected an element for each")));
}

TEST(Acceptance, IdleFieldsOfTheScalingAreNoFault) {
  const json linear = {{"rope_type", "linear"}, {"factor", 4}};
  const RopeConfig stretched = first(
      "qwen2", {{"rope_scaling", with(linear, {{"original_max_position_embeddings", 32768}})}});
  EXPECT_EQ(explain(stretched, 0).trained, 32768);
  EXPECT_EQ(explain(stretched, 0).target, 131072);
  EXPECT_THAT(stretched.scaling.warnings, ElementsAre(HasSubstr("no effect on frequencies")));
  EXPECT_THAT(warnings("qwen2", {{"rope_scaling", with(kYarn, {{"low_freq_factor", 1}})}}),
              ElementsAre("low_freq_factor has no effect with rope_type yarn"));
  EXPECT_EQ(first("qwen2", {{"rope_scaling", json::object()}}).scaling.type, "default");
  EXPECT_EQ(first("llama", {{"rope_scaling",
                             {{"rope_type", "llama3"},
                              {"factor", 8},
                              {"low_freq_factor", 1},
                              {"high_freq_factor", 4}}}})
                .scaling.original_length,
            131072);
  EXPECT_THAT(
      [&] {
        first("qwen2", {{"rope_scaling", with(kYarn, {{"facter", 4}})}});
      },
      ThrowsMessage<Error>(HasSubstr("\"facter\": expected a field")));
}

TEST(Acceptance, PublishedFilesAreRead) {
  const RopeConfig ocr =
      first("deepseek_v2", {{"use_mla", false}, {"qk_rope_head_dim", 0}, {"qk_nope_head_dim", 0}});
  EXPECT_EQ(ocr.rotary_dim, 128);
  EXPECT_FALSE(ocr.latent);
  EXPECT_EQ(ocr.pairing, Pairing::kHalfSplit);
  const RopeConfig hunyuan = first("hunyuan_vl", {{"rope_theta", 1e4},
                                                  {"rope_scaling",
                                                   {{"alpha", 1000},
                                                    {"factor", 1},
                                                    {"type", "xdrope"},
                                                    {"xdrope_section", {16, 16, 16, 16}}}}});
  EXPECT_NEAR(hunyuan.base / (1e4 * std::pow(1000, 128.0 / 126)), 1, 1e-12);
  EXPECT_THAT(hunyuan.scaling.sections, ElementsAre(16, 16, 16, 16));
  EXPECT_EQ(first("phi3small", {{"rope_embedding_base", 1e6}, {"rope_position_scale", 1}}).base,
            1e6);
  EXPECT_EQ(
      first("openelm", {{"head_dim", 64}, {"rope_freq_constant", 1e4}, {"rope_max_length", 1}})
          .base,
      1e4);
  EXPECT_EQ(first("stablelm_alpha", {{"rotary_scaling_factor", 1}, {"rotary_emb_base", 1e4}}).base,
            1e4);
  const json bamba = {
      {"attn_rotary_emb", 64}, {"attn_layer_indices", {9}}, {"num_hidden_layers", 12}};
  EXPECT_EQ(first("bamba", bamba).rotary_dim, 64);
}

TEST(Acceptance, OtherWords) {
  EXPECT_THAT(warnings("chatglm", {{"position_encoding_2d", true}}),
              Contains(HasSubstr("not audited: position_encoding_2d")));
  EXPECT_THAT(
      [] {
        read({{"dim", 4096}, {"n_heads", 32}, {"yarn", {{"factor", 16}}}});
      },
      ThrowsMessage<Error>(HasSubstr("Mistral's own params.json")));
  EXPECT_THAT(
      [] {
        first("qwen2", {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", nullptr}}}});
      },
      ThrowsMessage<Error>(
          HasSubstr("config.json: rope_parameters: rope_theta: expected the base")));
  EXPECT_THAT(warnings("llama", {{"partial_rotary_factor", 0.5},
                                 {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2}}}}),
              Contains(HasSubstr("their forward pass then fails on the sizes")));
}

}  // namespace
}  // namespace sextant::testing
