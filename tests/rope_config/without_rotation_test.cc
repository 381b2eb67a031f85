// Windows of models that do not rotate, and other facts of families without rotation.
#include "sextant/rope_config/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/rope_config/explain.h"
#include "tests/rope_config/config_files.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

json types(const json& list) {
  return {{"model_type", "gpt_neo"}, {"hidden_size", 2048}, {"num_heads", 16},
          {"num_layers", 6},         {"window_size", 256},  {"attention_types", list}};
}

std::vector<int64_t> local_layers(const json& config) {
  for (const RopeConfig& group : read(config)) {
    if (group.window > 0) return group.layer_numbers;
  }
  return {};
}

TEST(WithoutRotation, GptNeosLocalLayersHaveAWindow) {
  const auto neo = read(types({{{"global", "local"}, 3}}));
  ASSERT_EQ(neo.size(), 2U);
  EXPECT_EQ(neo[0].window, 0);
  EXPECT_EQ(neo[1].window, 256);
  EXPECT_EQ(neo[1].layer_numbers, (std::vector<int64_t>{1, 3, 5}));
  EXPECT_EQ(neo[0].instead, "learned");
  EXPECT_EQ(neo[1].instead, "learned");
  EXPECT_EQ(largest_distance(neo[1]), 255);
  EXPECT_EQ(local_layers(types({{{"global"}, 2}, {{"local"}, 4}})),
            (std::vector<int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(local_layers({{"model_type", "gpt_neo"}, {"num_layers", 4}}),
            (std::vector<int64_t>{1, 3}));
  EXPECT_THAT(local_layers(types({{{"global"}, 6}})), IsEmpty());
}

TEST(WithoutRotation, WindowsReachToBothSides) {
  const auto reach = [](const json& config) { return largest_distance(read(config).at(0)); };
  EXPECT_EQ(reach({{"model_type", "longformer"}, {"attention_window", 512}}), 256);
  EXPECT_EQ(reach({{"model_type", "led"}, {"attention_window", 1024}, {"encoder_layers", 2}}), 512);
  EXPECT_EQ(reach({{"model_type", "longt5"}, {"local_radius", 127}, {"num_layers", 2}}), 127);
  EXPECT_EQ(reach({{"model_type", "pegasus_x"}, {"block_size", 512}}), 511);
  const auto by_layer = read({{"model_type", "longformer"},
                              {"num_hidden_layers", 3},
                              {"attention_window", {64, 128, 64}}});
  ASSERT_EQ(by_layer.size(), 2U);
  EXPECT_EQ(by_layer[0].window, 33);
  EXPECT_EQ(by_layer[0].layer_numbers, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(by_layer[1].window, 65);
  EXPECT_TRUE(by_layer[1].both_sides);
  EXPECT_THAT(by_layer[0].notes, Contains(HasSubstr("as far to the right as to the left")));
  EXPECT_THAT(
      read({{"model_type", "longt5"}, {"encoder_attention_type", "transient-global"}}).at(0).notes,
      Contains(HasSubstr("a mean of every block")));
}

TEST(WithoutRotation, BiasesByDistanceHaveWindows) {
  const auto inkling = read({{"model_type", "inkling_text"},
                             {"num_hidden_layers", 6},
                             {"sliding_window_size", 512},
                             {"local_layer_ids", {1, 2}}});
  ASSERT_EQ(inkling.size(), 2U);
  EXPECT_EQ(inkling[1].window, 512);
  EXPECT_EQ(inkling[1].layer_numbers, (std::vector<int64_t>{1, 2}));
  EXPECT_THAT(inkling[0].instead, HasSubstr("a bias by distance"));
}

TEST(WithoutRotation, SparseBlocksAreSaid) {
  const auto warnings = [](const json& config) { return read(config).at(0).scaling.warnings; };
  for (const char* type : {"big_bird", "bigbird_pegasus"}) {
    EXPECT_THAT(warnings({{"model_type", type}}), Contains(HasSubstr("sparse by blocks")));
    EXPECT_THAT(warnings({{"model_type", type}, {"attention_type", "original_full"}}), IsEmpty());
  }
  EXPECT_THAT(warnings({{"model_type", "reformer"}}), Contains(HasSubstr("attn_layers")));
}

TEST(WithoutRotation, MptWithLearnedPositionsIsSaid) {
  const json mpt = {{"model_type", "mpt"}, {"d_model", 2048}, {"n_heads", 16}};
  const auto warnings = [&](const json& attention) {
    return read(with(mpt, {{"attn_config", attention}})).at(0).scaling.warnings;
  };
  EXPECT_THAT(warnings({{"alibi", false}}), Contains(HasSubstr("attn_config.alibi is not true")));
  EXPECT_THAT(
      read(with(mpt, {{"learned_pos_emb", true}, {"attn_config", {{"attn_impl", "torch"}}}}))
          .at(0)
          .scaling.warnings,
      Contains(HasSubstr("learned vectors")));
  EXPECT_THAT(warnings({{"alibi", true}}), IsEmpty());
  EXPECT_THAT(warnings({{"attn_impl", "torch"}}), IsEmpty());
  EXPECT_EQ(read(with(mpt, {{"attn_config", {{"alibi", false}}}})).at(0).instead, "alibi");
}

// A file that says rotation under a type that never rotates is another model.
TEST(WithoutRotation, OtherModelsUnderTheNameRotate) {
  EXPECT_TRUE(read({{"model_type", "gpt_neo"},
                    {"hidden_size", 2048},
                    {"num_attention_heads", 16},
                    {"rope_theta", 1e4}})
                  .at(0)
                  .rotates);
}

TEST(KnownFields, SwitchesOfPrecisionChangeNoFrequency) {
  const json config = {{"model_type", "gpt_foo"}, {"head_dim", 64}, {"rope_theta", 5e5}};
  for (const json& field : std::vector<json>{{{"rope_full_precision", true}},
                                             {{"rotary_emb_fp32", false}},
                                             {{"rope_dtype", "float32"}},
                                             {{"use_fused_rope_kernel", true}},
                                             {{"use_flash_rotary", true}}}) {
    EXPECT_EQ(read(with(config, field)).at(0).base, 5e5) << field;
  }
  EXPECT_THAT(
      [&] {
        read(with(config, {{"rope_precision_factor", 2.0}}));
      },
      ThrowsMessage<Error>(HasSubstr("rope_precision_factor")));
}

TEST(Families, OfOtherPublishersAreRead) {
  const json sizes = {{"hidden_size", 4096}, {"num_attention_heads", 32}, {"num_hidden_layers", 2}};
  const auto of = [&](const std::string& type, const json& more) {
    return read(with(with(sizes, {{"model_type", type}}), more)).at(0);
  };
  EXPECT_EQ(of("internlm", {{"rope_theta", 5e5}}).base, 1e4) << "its code has no other base";
  const RopeConfig rotary = of("internlm", {{"rotary", {{"base", 2e4}, {"type", "dynamic"}}}});
  EXPECT_EQ(rotary.base, 2e4);
  EXPECT_THAT(rotary.scaling.warnings, Contains(HasSubstr("rotary.type is dynamic")));
  EXPECT_EQ(of("orion", json::object()).base, 1e4);
  EXPECT_EQ(of("xverse", json::object()).base, 1e4);
  EXPECT_THAT(of("xverse", json::object()).scaling.warnings,
              Contains(HasSubstr("rope_theta is missing")));
  EXPECT_EQ(of("xverse", {{"rope_theta", 5e5}}).base, 5e5);
  EXPECT_EQ(of("llada", {{"rope_theta", 5e5}, {"rope_full_precision", true}}).base, 5e5);
  const RopeConfig ernie = of("ernie4_5_moe_vl", {{"rope_3d", true}, {"freq_allocation", 20}});
  EXPECT_EQ(ernie.base, 5e5);
  EXPECT_EQ(ernie.pairing, Pairing::kInterleaved);
  // Hunyuan-A13B as published.
  const RopeConfig hunyuan = of("hunyuan", {{"attention_head_dim", 128},
                                            {"use_rotary_pos_emb", true},
                                            {"position_embedding_xdrope", false},
                                            {"rope_theta", 1e4},
                                            {"qk_rope_head_dim", nullptr},
                                            {"rope_scaling",
                                             {{"type", "dynamic"},
                                              {"alpha", 1000.0},
                                              {"factor", 1.0},
                                              {"beta_fast", 32},
                                              {"beta_slow", 1},
                                              {"mscale", 1.0},
                                              {"mscale_all_dim", 1.0}}}});
  EXPECT_NEAR(hunyuan.base / (1e4 * std::pow(1000, 128.0 / 126)), 1, 1e-14);
  for (const RopeConfig& rope : {rotary, ernie, hunyuan}) {
    EXPECT_THAT(rope.scaling.warnings, Not(Contains(HasSubstr("not audited"))));
  }
}

}  // namespace
}  // namespace sextant::testing
