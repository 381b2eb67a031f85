// Faults of files from public bug reports; expected values follow from the published formulas.
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
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

TEST(Reports, AnUnknownTypeIsSaidToBeNotAudited) {
  const RopeConfig rope =
      read({{"model_type", "gpt_foo"}, {"head_dim", 64}, {"rope_theta", 1e4}}).at(0);
  EXPECT_THAT(rope.scaling.warnings, Contains(HasSubstr("not audited: \"gpt_foo\"")));
  EXPECT_FALSE(rope.pairing);
  EXPECT_THAT(read({{"head_dim", 64}, {"rope_theta", 1e4}}).at(0).scaling.warnings, IsEmpty());
}

TEST(Reports, TwoSchemasThatAgreeAreOne) {
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8},
                       {"low_freq_factor", 1},
                       {"high_freq_factor", 4},
                       {"original_max_position_embeddings", 8192}};
  json config = {{"model_type", "llama"},
                 {"head_dim", 128},
                 {"rope_theta", 5e5},
                 {"rope_scaling", llama3},
                 {"rope_parameters", with(llama3, {{"rope_theta", 5e5}})}};
  EXPECT_EQ(read(config).at(0).scaling.type, "llama3");
  config["rope_scaling"]["factor"] = 32;
  EXPECT_EQ(explain(read(config).at(0), 0).factor, 32) << "transformers takes rope_scaling";
  EXPECT_THAT(read(config).at(0).scaling.warnings,
              Contains(HasSubstr("\"factor\" is 32 in rope_scaling and 8 in rope_parameters")));
}

TEST(Reports, ThingsSaidTwiceAreWarnedOf) {
  const auto warnings = [](const json& config) { return read(config).at(0).scaling.warnings; };
  EXPECT_THAT(warnings({{"model_type", "llama"},
                        {"head_dim", 128},
                        {"rope_theta", 1e4},
                        {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e5}}}}),
              Contains(AllOf(HasSubstr("rope_theta is 10000.0 beside"), HasSubstr("500000.0 in"))));
  EXPECT_THAT(warnings({{"model_type", "minimax_m2"},
                        {"head_dim", 128},
                        {"rotary_dim", 64},
                        {"rope_theta", 5e6},
                        {"partial_rotary_factor", 1.0}}),
              Contains(HasSubstr("rotary_dim is 64 and partial_rotary_factor 1.0")));
  EXPECT_THAT(warnings({{"head_dim", 128}, {"rope_theta", 1e4}, {"rotary_emb_base", 5e5}}),
              Contains(HasSubstr("rope_theta is 10000.0 and rotary_emb_base is 500000.0")));
  EXPECT_THAT(warnings({{"head_dim", 128},
                        {"rope_theta", 1e4},
                        {"rotary_dim", 64},
                        {"partial_rotary_factor", 0.5}}),
              IsEmpty());
}

TEST(Reports, LanguageModelsAreFoundUnderOtherNames) {
  const json model = {{"model_type", "qwen3"},
                      {"head_dim", 128},
                      {"rope_theta", 1e6},
                      {"hidden_size", 4096},
                      {"num_attention_heads", 32}};
  const json vision = {{"hidden_size", 1024}, {"num_attention_heads", 16}};
  for (const char* name : {"text_config", "llm_config", "language_config", "anything"}) {
    EXPECT_EQ(read({{"model_type", "seer"}, {name, model}, {"vision_config", vision}}).at(0).base,
              1e6);
  }
  EXPECT_EQ(
      read({{"model_type", "qwen3_omni_moe"},
            {"thinker_config", {{"model_type", "qwen3_omni_moe_thinker"}, {"text_config", model}}}})
          .at(0)
          .base,
      1e6);
  EXPECT_THAT(
      [&] {
        read({{"model_type", "seer"}, {"left", model}, {"right", model}});
      },
      ThrowsMessage<Error>(HasSubstr("expected one object that holds a language model, but "
                                     "got \"left\", \"right\"")));
}

TEST(Reports, WhatIsMissingIsAskedForAtOnce) {
  EXPECT_THAT(
      [] {
        read({{"model_type", "gpt_foo"}});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("head_dim: expected an integer"),
                                 HasSubstr("--head-dim"), HasSubstr("rope_theta: expected"),
                                 HasSubstr("--base"))));
}

// ChatGLM: rope_ratio has an effect, original_rope has none.
TEST(Reports, UnknownFieldsAreListedTheLikeliestFirst) {
  EXPECT_THAT(
      [] {
        read({{"model_type", "gpt_foo"},
              {"head_dim", 64},
              {"original_rope", true},
              {"rope_ratio", 50},
              {"outer_head_dim", 9},
              {"rope_theta", 1e4}});
      },
      ThrowsMessage<Error>(HasSubstr("\"rope_ratio\": expected no field about rotary "
                                     "positions that sextant does not know, but got 3: "
                                     "\"rope_ratio\": 50, \"original_rope\": true, "
                                     "\"outer_head_dim\": 9")));
}

TEST(Reports, ScalingsUnderOtherWords) {
  json factors = json::array();
  for (int f = 0; f < 64; ++f) factors.push_back(1 + 0.02 * f);
  json moe = {{"type", "longrope"},
              {"original_max_position_embeddings", 4096},
              {"short_factor", std::vector<double>(64, 1.0)},
              {"long_factor", factors},
              {"short_mscale", 1.243163121016122},
              {"long_mscale", 1.243163121016122}};
  const json config = {{"model_type", "phimoe"},
                       {"head_dim", 128},
                       {"rope_theta", 1e4},
                       {"max_position_embeddings", 131072},
                       {"original_max_position_embeddings", 4096}};
  const RopeConfig rope = read(with(config, {{"rope_scaling", moe}})).at(0);
  EXPECT_EQ(spectrum_of(rope, 131072).gain, 1.243163121016122);
  EXPECT_NEAR(frequency(rope, 10, 131072) * 1.2 / std::pow(1e4, -10.0 / 64), 1, 1e-14);
  moe["short_mscale"] = 1.1;
  const RopeConfig two = read(with(config, {{"rope_scaling", moe}})).at(0);
  EXPECT_EQ(spectrum_of(two, 4096).gain, 1.1);
  EXPECT_EQ(spectrum_of(two, 4097).gain, 1.243163121016122);
  // Nomic v1: dynamic NTK by transformers' formula from its training length on.
  const RopeConfig nomic = read({{"model_type", "nomic_bert"},
                                 {"n_embd", 768},
                                 {"n_head", 12},
                                 {"n_positions", 8192},
                                 {"rotary_emb_base", 1000},
                                 {"rotary_emb_fraction", 1.0},
                                 {"max_trained_positions", 2048},
                                 {"rotary_scaling_factor", 2}})
                               .at(0);
  const double base = 1000 * std::pow(2 * 8192.0 / 2048 - 1, 64.0 / 62);
  EXPECT_NEAR(frequency(nomic, 9, 8192) / std::pow(base, -9.0 / 32), 1, 1e-14);
  EXPECT_NEAR(frequency(nomic, 9, 2048) / std::pow(1000, -9.0 / 32), 1, 1e-14);
}

TEST(Reports, FieldsThatChangeNothingAreNoFault) {
  EXPECT_EQ(read({{"model_type", "exaone4"},
                  {"head_dim", 128},
                  {"num_hidden_layers", 8},
                  {"sliding_window", 4096},
                  {"sliding_window_pattern", "LLLG"},
                  {"rope_theta", 1e6}})
                .size(),
            2U);
  EXPECT_EQ(read({{"model_type", "glm_moe_dsa"},
                  {"qk_rope_head_dim", 64},
                  {"qk_nope_head_dim", 192},
                  {"indexer_rope_interleave", true},
                  {"rope_theta", 1e6}})
                .at(0)
                .rotary_dim,
            64);
  EXPECT_EQ(read({{"model_type", "qwen2_moe"},
                  {"head_dim", 128},
                  {"rope_theta", 1e6},
                  {"sliding_window", 0},
                  {"use_sliding_window", false}})
                .at(0)
                .window,
            0);
}

TEST(Reports, AStretchOfWindowsAloneIsWarnedOf) {
  const json yarn = {
      {"rope_type", "yarn"}, {"factor", 2}, {"original_max_position_embeddings", 131072}};
  const json config = {{"head_dim", 128},        {"num_hidden_layers", 8},
                       {"rope_theta", 5e4},      {"max_position_embeddings", 131072},
                       {"sliding_window", 1024}, {"rope_scaling", yarn}};
  EXPECT_THAT(read(with(config, {{"model_type", "cohere2"}})).at(0).scaling.warnings,
              Contains(HasSubstr("reaches only layers with a window of 1024")));
  EXPECT_THAT(read(with(config, {{"model_type", "gpt_oss"}})).at(0).scaling.warnings,
              Not(Contains(HasSubstr("reaches only"))));
}

TEST(Reports, LengthsOfLongRopeThatDifferAreSaid) {
  const json rope = {{"type", "longrope"},
                     {"factor", 16},
                     {"short_factor", {1, 1}},
                     {"long_factor", {2, 4}},
                     {"original_max_position_embeddings", 4096}};
  const RopeConfig phi = read({{"head_dim", 4},
                               {"rope_theta", 1e4},
                               {"max_position_embeddings", 16384},
                               {"rope_scaling", rope}})
                             .at(0);
  EXPECT_NEAR(spectrum_of(phi, 8192).gain, 1.1547, 5e-5) << "by factor, as transformers 5 does";
  EXPECT_THAT(phi.scaling.warnings, Contains(HasSubstr("factor is 16")));
}

}  // namespace
}  // namespace sextant::testing
