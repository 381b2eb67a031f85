#include "sextant/lab/result/engine_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/lab/result/stretch_candidates.h"
#include "sextant/rope_config/explain.h"
#include "tests/rope_config/gguf_files.h"

namespace sextant::lab {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr int64_t kTrained = 512, kLength = 1024;

json llama() {
  return {{"model_type", "llama"},          {"hidden_size", 256},
          {"num_attention_heads", 4},       {"num_hidden_layers", 2},
          {"max_position_embeddings", 512}, {"rope_theta", 10000.0}};
}

Checkpoint checkpoint_of(const json& config) {
  Checkpoint checkpoint;
  checkpoint.name = "small";
  checkpoint.train_length = kTrained;
  checkpoint.rope = read_rope_config_bytes(config.dump(), {});
  return checkpoint;
}

StretchCandidate candidate(const std::string& name) {
  for (const StretchCandidate& one : stretch_candidates("{}", kTrained, kLength)) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << name;
  return {};
}

RopeConfig read_again(const std::string& text) {
  return read_rope_config_bytes(text, {}).configs.at(0);
}

TEST(EngineWords, InterpolateTheSlowestPairAndAreThereForEveryEngine) {
  json hf5 = llama();
  hf5.erase("rope_theta");
  hf5["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 10000.0}};
  for (const json& config : {llama(), hf5}) {
    for (const char* name : {"direct", "pi", "ntk", "yarn", "yarn-8-turns"}) {
      const EngineWords words = engine_words(checkpoint_of(config), candidate(name), kLength);
      ASSERT_NE(words.hugging_face.text, "") << name << words.hugging_face.obstacle;
      const RopeConfig written = read_again(words.hugging_face.text);
      EXPECT_EQ(declared_length(written), kLength) << name;
      const auto slowest = [](const RopeConfig& setting) {
        return static_cast<double>(spectrum_of(setting, kLength).pairs.back().frequency);
      };
      const double factor = slowest(written) / slowest(read_again(config.dump()));
      EXPECT_NEAR(factor, std::string(name) == "direct" ? 1 : 0.5, 1e-9) << name;
      ASSERT_NE(words.vllm.text, "") << name << words.vllm.obstacle;
      ASSERT_NE(words.llama_cpp.text, "") << name << words.llama_cpp.obstacle;
    }
  }
}

TEST(EngineWords, OfNtkAreItsBase) {
  const EngineWords words = engine_words(checkpoint_of(llama()), candidate("ntk"), kLength);
  EXPECT_NEAR(read_again(words.hugging_face.text).base, 10000 * std::pow(2.0, 64.0 / 62), 1e-6);
}

TEST(EngineWords, OfDynamicKeepTheTrainedLength) {
  const EngineWords words = engine_words(checkpoint_of(llama()), candidate("dynamic"), kLength);
  const json config = json::parse(words.hugging_face.text);
  EXPECT_EQ(config.at("max_position_embeddings"), kTrained);
  EXPECT_EQ(config.at("rope_scaling").at("rope_type"), "dynamic");
}

TEST(EngineWords, AreMissingWithAReason) {
  for (const char* name :
       {"rerope", "self-extend", "dual-chunk", "streaming", "log-n", "ntk-mixed", "dynamic-yarn"}) {
    const EngineWords words = engine_words(checkpoint_of(llama()), candidate(name), kLength);
    for (const Words* each : {&words.hugging_face, &words.vllm, &words.llama_cpp}) {
      EXPECT_EQ(each->text, "") << name;
      EXPECT_THAT(each->obstacle, HasSubstr(name));
    }
  }
  const json nested = {{"model_type", "llava"}, {"text_config", llama()}};
  EXPECT_THAT(engine_words(checkpoint_of(nested), candidate("yarn"), kLength).vllm.obstacle,
              HasSubstr("nested"));
}

TEST(EngineWords, OfAGgufFileAreItsRotaryPart) {
  Checkpoint checkpoint;
  checkpoint.train_length = kTrained;
  checkpoint.rope = sextant::testing::read_gguf("llama", {{"context_length", uint64_t{512}}});
  const EngineWords words = engine_words(checkpoint, candidate("yarn"), kLength);
  ASSERT_NE(words.hugging_face.text, "") << words.hugging_face.obstacle;
  EXPECT_EQ(read_again(words.hugging_face.text).scaling.type, "yarn");
  EXPECT_THAT(words.llama_cpp.text, HasSubstr("--rope-scaling yarn"));
}

}  // namespace
}  // namespace sextant::lab
