// Vision parts of configurations: their axes, channels, frequencies, grids and windows, what makes
// a part not judged, and their comparison. The audit holds the table against transformers' code.
#include "sextant/rope_config/vision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "sextant/rope_config/compare_configs.h"
#include "sextant/rope_config/read_config.h"

namespace sextant {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<VisionPart> parts(const json& config) { return read_vision(config, {}); }

VisionPart part(const json& config) {
  const std::vector<VisionPart> all = parts(config);
  EXPECT_EQ(all.size(), 1);
  return all.empty() ? VisionPart{} : all[0];
}

double frequency(const VisionPart& part, size_t pair) { return part.pairs[pair].frequency; }

TEST(VisionTest, QwenTowerHasItsAxesOneAfterTheOther) {
  const VisionPart tower = part(
      {{"model_type", "qwen2_vl"}, {"vision_config", {{"embed_dim", 1280}, {"num_heads", 16}}}});
  EXPECT_EQ(tower.place, "vision_config");
  EXPECT_EQ(tower.model_type, "qwen2_vl_vision");
  EXPECT_TRUE(tower.rotates);
  EXPECT_EQ(tower.rotary_dim, 80);
  EXPECT_THAT(tower.axes, ElementsAre("height", "width"));
  EXPECT_THAT(tower.sections, ElementsAre(20, 20));
  EXPECT_EQ(tower.pairs[20].axis, 1);
  EXPECT_EQ(tower.pairs[20].first, 20);
  EXPECT_EQ(tower.pairs[20].second, 60);
  EXPECT_DOUBLE_EQ(frequency(tower, 20), 1);
  EXPECT_NEAR(frequency(tower, 1), std::pow(10000, -1.0 / 20), 1e-15);
}

TEST(VisionTest, PixtralGivesEachAxisEverySecondFrequency) {
  const VisionPart tower = part({{"model_type", "pixtral"}, {"head_dim", 64}});
  EXPECT_EQ(tower.place, "");
  EXPECT_NEAR(frequency(tower, 1), std::pow(10000, -4.0 / 64), 1e-15);
  EXPECT_NEAR(frequency(tower, 16), std::pow(10000, -2.0 / 64), 1e-15);
  EXPECT_EQ(*tower.grid, (std::array<int64_t, 2>{64, 64}));
}

TEST(VisionTest, KimisAxesTakeTurnsWidthFirst) {
  const VisionPart tower = part({{"model_type", "kimi_k25"}, {"vision_config", json::object()}});
  EXPECT_THAT(tower.axes, ElementsAre("width", "height"));
  EXPECT_EQ(tower.pairs[2].axis, 0);
  EXPECT_EQ(tower.pairs[3].axis, 1);
  EXPECT_NEAR(frequency(tower, 3), std::pow(10000, -1.0 / 18), 1e-15);
}

TEST(VisionTest, Gemma4PairsChannelsWithinEachAxis) {
  const VisionPart tower = part({{"model_type", "gemma4"}, {"vision_config", json::object()}});
  EXPECT_EQ(tower.pairs[15].first, 15);
  EXPECT_EQ(tower.pairs[15].second, 31);
  EXPECT_EQ(tower.pairs[16].first, 32);
  EXPECT_EQ(tower.pairs[16].second, 48);
}

TEST(VisionTest, DinoV3sCoordinatesAreNormalised) {
  const VisionPart tower = part({{"model_type", "dinov3_vit"}, {"rope_theta", 50}});
  EXPECT_TRUE(tower.normalised);
  EXPECT_EQ(tower.base, 50);
  EXPECT_DOUBLE_EQ(frequency(tower, 0), 2 * std::numbers::pi);
  EXPECT_EQ(tower.first_token, "not rotated");
}

TEST(VisionTest, MiniMaxLeavesChannelsThatThreeAxesDoNotFill) {
  const VisionPart tower =
      part({{"model_type", "minimax_m3_vl"},
            {"vision_config", {{"model_type", "clip_vision_model"}, {"rope_theta", 10000.0}}}});
  EXPECT_EQ(tower.rotary_dim, 78);
  EXPECT_EQ(tower.head_dim, 80);
  EXPECT_THAT(tower.notes, ElementsAre(HasSubstr("clip_vision_model")));
}

TEST(VisionTest, WindowsAreCountedInPatches) {
  const VisionPart tower =
      part({{"model_type", "qwen2_5_vl"},
            {"vision_config", {{"window_size", 112}, {"patch_size", 14}, {"hidden_size", 1280}}}});
  EXPECT_EQ(tower.window, 8);
  EXPECT_EQ(windows_of(tower), "windows of 8 x 8 patches; all patches in layers 7, 15, 23, 31");
  const VisionPart sam = part({{"model_type", "sam3_vit_model"}});
  EXPECT_DOUBLE_EQ(sam.full_scale, 24.0 / 72);
}

TEST(VisionTest, LearnedVectorsAreNamedAsWhatTheyAre) {
  const VisionPart tower = part({{"model_type", "llava"}, {"vision_config", json::object()}});
  EXPECT_TRUE(tower.judged);
  EXPECT_FALSE(tower.rotates);
  EXPECT_EQ(tower.model_type, "clip_vision_model");
  EXPECT_EQ(tower.instead, "a learned vector for each patch");
}

TEST(VisionTest, PartsInsidePartsAreFound) {
  const std::vector<VisionPart> all =
      parts({{"model_type", "qwen3_omni_moe"},
             {"thinker_config", {{"vision_config", {{"num_heads", 16}}}}}});
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].place, "thinker_config.vision_config");
  EXPECT_TRUE(all[0].rotates);
}

TEST(VisionTest, WhatCannotBeReadIsNotJudgedWithAReason) {
  const auto reason = [](const json& fields) {
    const VisionPart tower = part({{"model_type", "qwen2_vl"}, {"vision_config", fields}});
    EXPECT_FALSE(tower.judged);
    EXPECT_TRUE(tower.pairs.empty());
    return tower.instead;
  };
  EXPECT_THAT(reason({{"embed_dim", 1312}}), HasSubstr("expected a multiple of 4"));
  EXPECT_THAT(reason({{"embed_dim", "wide"}}), HasSubstr("expected a number"));
  EXPECT_THAT(reason({{"num_heads", 0}}), HasSubstr("divisor"));
  EXPECT_THAT(reason({{"rope_parameters", {{"rope_theta", -1}}}}), HasSubstr("rope_theta"));
  EXPECT_THAT(reason({{"rope_scaling", {{"rope_type", "yarn"}}}}),
              HasSubstr("expected axial or default, but got \"yarn\""));
  // This grid is of other fields, and no patch of 0 pixels divides the picture.
  const VisionPart memory =
      part({{"model_type", "sam2_video"}, {"image_size", 64}, {"patch_size", 0}});
  EXPECT_TRUE(memory.judged);
  EXPECT_TRUE(memory.warnings.empty());
  EXPECT_EQ(part({{"model_type", "own"}, {"vision_config", {{"hidden_size", 8}}}}).instead,
            "it has no model_type");
  EXPECT_EQ(part({{"model_type", "own"}, {"vision_config", {{"model_type", "new"}}}}).instead,
            "its type is in no table");
}

TEST(VisionTest, AFileHasAtMost64Parts) {
  json config = json::object();
  for (int i = 0; i < 100; ++i) config["part" + std::to_string(i)] = {{"model_type", "pixtral"}};
  const std::vector<VisionPart> all = parts(config);
  ASSERT_EQ(all.size(), 64);
  EXPECT_TRUE(all[62].judged);
  EXPECT_EQ(all[63].instead, "a file has at most 64 vision parts");
}

TEST(VisionTest, BasesOfTheLanguageModelAndPixelsInNoPatchAreWarnings) {
  const RopeConfig text{
      .layers = "", .model_type = "", .head_dim = 8, .rotary_dim = 8, .base = 1e6};
  const std::vector<VisionPart> all = read_vision(
      {{"model_type", "glm4v"}, {"vision_config", {{"rope_theta", 1e6}, {"image_size", 340}}}},
      {text});
  ASSERT_EQ(all.size(), 1);
  EXPECT_THAT(all[0].warnings,
              ElementsAre(HasSubstr("no multiple of patch_size 14"),
                          HasSubstr("rope_theta 1000000.0 is that of the language model")));
}

TEST(VisionTest, TwoFilesAreComparedByPlace) {
  const auto file = [](const json& vision) {
    return read_rope_config_bytes(json({{"model_type", "mistral3"},
                                        {"text_config",
                                         {{"model_type", "mistral"},
                                          {"hidden_size", 64},
                                          {"num_attention_heads", 4},
                                          {"rope_theta", 1e4}}},
                                        {"vision_config", vision}})
                                      .dump(),
                                  {});
  };
  const ReadRopeConfig a = file({{"model_type", "pixtral"}});
  EXPECT_TRUE(compare_configs(a, a).findings.empty());
  const ConfigComparison other =
      compare_configs(a, file({{"model_type", "pixtral"}, {"rope_theta", 1e5}, {"head_dim", 32}}));
  ASSERT_EQ(other.findings.size(), 3);
  EXPECT_EQ(other.findings[0].kind, "vision: vision_config");
  EXPECT_EQ(other.findings[0].field, "axes");
  EXPECT_EQ(other.findings[1].field, "rotated channels");
  EXPECT_EQ(other.findings[2].field, "base");
  EXPECT_EQ(other.findings[2].got, "100000.0");
  const ConfigComparison none = compare_configs(a, file({{"model_type", "siglip_vision_model"}}));
  ASSERT_EQ(none.findings.size(), 1);
  EXPECT_EQ(none.findings[0].got, "does not rotate: a learned vector for each patch");
}

// M-RoPE: the order in which the pairs of a language model follow the axes.
TEST(VisionTest, EachLanguageModelHasItsOwnOrderOfAxes) {
  const auto axes = [](const std::string& type, const json& rope) {
    const ReadRopeConfig read = read_rope_config_bytes(json({{"model_type", type},
                                                             {"head_dim", 128},
                                                             {"hidden_size", 2048},
                                                             {"num_attention_heads", 16},
                                                             {"rope_theta", 1e6},
                                                             {"rope_scaling", rope}})
                                                           .dump(),
                                                       {});
    std::vector<int> found;
    for (const size_t f : {0, 1, 2, 44, 63}) found.push_back(read.explained[0].pairs[f].axis);
    return found;
  };
  const json sections = {{"rope_type", "default"}, {"mrope_section", {22, 22, 20}}};
  EXPECT_THAT(axes("ernie4_5_vl_moe_text", sections), ElementsAre(1, 2, 1, 0, 0));
  EXPECT_THAT(axes("qwen3_vl_text", sections), ElementsAre(0, 1, 2, 2, 0));
  EXPECT_THAT(axes("qwen2_vl_text", sections), ElementsAre(0, 0, 0, 2, 2));
}

}  // namespace
}  // namespace sextant
