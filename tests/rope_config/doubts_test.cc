// Each kind of value without an effect is a doubt, and facts about engines are none.
#include "sextant/rope_config/doubts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/rope_config/read_config.h"
#include "tests/rope_config/gguf_files.h"

namespace sextant {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::read_gguf;
using testing::scaling;
using testing::with;

std::vector<std::string> doubts(const ReadRopeConfig& read) {
  std::vector<std::string> all;
  for (const RopeConfig& group : read.configs)
    for (std::string& doubt : doubts_of(group)) all.push_back(std::move(doubt));
  return all;
}

ReadRopeConfig read_changed(const json& changes) {
  json config = {{"model_type", "llama"},    {"hidden_size", 1024},
                 {"num_attention_heads", 8}, {"num_hidden_layers", 4},
                 {"rope_theta", 10000.0},    {"max_position_embeddings", 32768}};
  config.update(changes);
  return read_rope_config_bytes(config.dump(), {});
}

const json kYarn = {
    {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 8192}};

TEST(Doubts, KeysThatLlamaCppDoesNotRead) {
  EXPECT_THAT(doubts(read_gguf(
                  "llama", with(scaling("yarn", 4, 8192), {{"attention.temperature_scale", 0.1}}))),
              Contains(HasSubstr("temperature_scale is in the file, but ")));
}

TEST(Doubts, ValuesInPlaceOfWhichLlamaCppTakesOthers) {
  EXPECT_THAT(doubts(read_gguf("qwen2", with(scaling("yarn", 4, 8192),
                                             {{"rope.scaling.yarn_beta_fast", 16.0}}))),
              Contains(HasSubstr(" in the file, but llama.cpp")));
}

TEST(Doubts, StretchesBeyondTheLengthOfTheFile) {
  EXPECT_THAT(doubts(read_rope_config_bytes("llama-server -c 16384 --rope-scale 4",
                                            {.base = 1e4, .head_dim = 128})),
              Contains(HasSubstr("--rope-scale helps nothing beyond ")));
}

TEST(Doubts, TwoStretchesInOneGgufFile) {
  const testing::Tensors divisors = {{"rope_freqs.weight", std::vector<float>(64, 2.0F)}};
  EXPECT_THAT(doubts(read_gguf("llama", scaling("linear", 4), divisors)),
              Contains(HasSubstr(" are both in the file")));
}

TEST(Doubts, AStretchOfLayersWithAWindow) {
  EXPECT_THAT(doubts(read_changed({{"model_type", "mistral"},
                                   {"sliding_window", 4096},
                                   {"max_position_embeddings", 32768},
                                   {"rope_scaling", kYarn}})),
              Contains(HasSubstr("the stretch reaches only")));
}

TEST(Doubts, AFieldWithoutEffect) {
  EXPECT_THAT(doubts(read_changed({{"rope_scaling",
                                    {{"rope_type", "linear"},
                                     {"factor", 4.0},
                                     {"original_max_position_embeddings", 8192}}}})),
              Contains(HasSubstr("has no effect")));
}

TEST(Doubts, AFieldAtAPlaceThatIsNotRead) {
  const json inner = {{"model_type", "llama"},    {"hidden_size", 1024},
                      {"num_attention_heads", 8}, {"num_hidden_layers", 4},
                      {"rope_theta", 10000.0},    {"max_position_embeddings", 32768}};
  const json config = {{"model_type", "llava"}, {"text_config", inner}, {"rope_theta", 500000.0}};
  EXPECT_THAT(doubts(read_rope_config_bytes(config.dump(), {})),
              Contains(HasSubstr("not read, as ")));
}

TEST(Doubts, TwoSchemasThatContradictEachOther) {
  EXPECT_THAT(doubts(read_changed({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}},
                                   {"rope_parameters",
                                    {{"rope_type", "yarn"},
                                     {"factor", 4.0},
                                     {"rope_theta", 500000.0},
                                     {"original_max_position_embeddings", 8192}}}})),
              Contains(HasSubstr("rope_scaling is taken")));
}

TEST(Doubts, ASoundConfigurationHasNone) {
  EXPECT_THAT(doubts(read_changed(json::object())), IsEmpty());
  EXPECT_THAT(doubts(read_changed({{"rope_scaling", kYarn}})), IsEmpty());
  EXPECT_THAT(doubts(read_gguf("qwen2", scaling("yarn", 4, 8192))), IsEmpty());
}

}  // namespace
}  // namespace sextant
