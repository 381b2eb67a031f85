// Command lines of engines as people paste them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/error.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/read_config.h"

namespace sextant::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

RopeConfig read(const std::string& text,
                const Overrides& overrides = {.base = 1e6, .head_dim = 128}) {
  return read_rope_config_bytes(text, overrides).settings.at(0);
}

const Yarn& yarn_of(const RopeConfig& setting) {
  return std::get<Yarn>(std::get<Stretch>(setting.scaling.stretch));
}

// -c is how far to read.
TEST(LlamaCppFlags, TheContextIsNotTheOriginalLength) {
  const RopeConfig setting =
      read("llama-server -c 131072 --rope-scaling yarn --rope-scale 4 --rope-freq-base 1000000");
  EXPECT_EQ(yarn_of(setting).original_length, 32768);
  EXPECT_THAT(setting.scaling.warnings, Contains(HasSubstr("--yarn-orig-ctx is missing")));
  EXPECT_THAT(setting.scaling.warnings, Each(Not(HasSubstr("max_position_embeddings"))));
  const RopeConfig given =
      read("-c 131072 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 40960");
  EXPECT_EQ(yarn_of(given).original_length, 40960);
  EXPECT_THAT(given.scaling.warnings, Each(Not(HasSubstr("is missing"))));
  EXPECT_EQ(yarn_of(read("--rope-scaling yarn --rope-scale 4",
                         {.base = 1e6, .head_dim = 128, .length = 65536}))
                .original_length,
            16384);
  EXPECT_THAT([] { read("--rope-scaling yarn --rope-scale 4"); },
              ThrowsMessage<Error>(HasSubstr("flags: --yarn-orig-ctx: expected the length")));
}

TEST(LlamaCppFlags, NoFlagSaysAGain) {
  const RopeConfig setting =
      read("--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096 --yarn-attn-factor 0.5");
  EXPECT_NEAR(spectrum_of(setting, 1).gain, 0.1 * std::log(4) + 1, 1e-15);
  EXPECT_THAT(setting.scaling.warnings, Contains(HasSubstr("#17945")));
  EXPECT_THAT(setting.scaling.warnings, Contains(HasSubstr("ik_llama.cpp still multiplies")));
}

TEST(VllmFlags, DottedNamesAreObjects) {
  const RopeConfig setting = read(
      "vllm serve m --hf-overrides.rope_parameters.rope_type yarn "
      "--hf_overrides.rope_parameters.factor=4.0 --max-model-len 131072 "
      "--hf-overrides.rope_parameters.original_max_position_embeddings 32768");
  EXPECT_EQ(yarn_of(setting).factor, 4);
  EXPECT_EQ(yarn_of(setting).original_length, 32768);
  EXPECT_NEAR(spectrum_of(setting, 1).gain, 0.1 * std::log(4) + 1, 1e-15);
  const RopeConfig old =
      read("vllm serve m --rope-scaling.rope_type linear --rope-scaling.factor 2");
  EXPECT_EQ(std::get<Linear>(std::get<Stretch>(old.scaling.stretch)).factor, 2);
  EXPECT_THAT(old.scaling.warnings,
              Contains(HasSubstr("removed by #28006 (November 2025) in 0.11.1")));
  for (const char* wrong : {"--hf-overrides.a.99999999 1", "--hf-overrides..a 1",
                            "--hf-overrides.a.b.c.d.e.f.g.h.i 1"}) {
    EXPECT_THAT([&] { read(wrong); },
                ThrowsMessage<Error>(HasSubstr("expected keys with dots between them")))
        << wrong;
  }
}

TEST(VllmFlags, UnquotedJsonIsToBeQuoted) {
  EXPECT_THAT([] { read(R"(vllm serve m --hf-overrides {"rope_theta": 1e6})"); },
              ThrowsMessage<Error>(HasSubstr("expected JSON within single quotes")));
  EXPECT_THAT([] { read(R"(vllm serve m --hf-overrides {"rope_theta":1e6})"); },
              ThrowsMessage<Error>(HasSubstr("expected JSON within single quotes")));
}

TEST(VllmFlags, LaterVersionsDoNotReadAttnFactor) {
  const std::string yarn =
      R"(vllm serve m --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 4,
         "original_max_position_embeddings": 8192, )";
  const RopeConfig old = read(yarn + R"("attn_factor": 0.5}}')");
  EXPECT_NEAR(spectrum_of(old, 1).gain, 0.05 * std::log(4) + 0.5, 1e-15);
  EXPECT_THAT(old.scaling.warnings, Contains(HasSubstr("#56446")));
  const RopeConfig both = read(yarn + R"("attn_factor": 0.5, "attention_factor": 2}}')");
  EXPECT_EQ(spectrum_of(both, 1).gain, 2);
  EXPECT_THAT(both.scaling.warnings, Each(Not(HasSubstr("#56446"))));
}

// A length beside an override of the language model's object.
TEST(VllmFlags, LengthsGoWhereTheOverrideIs) {
  const std::string start =
      R"(vllm serve m --max-model-len 65536 --hf-overrides '{"text_config": {)";
  const RopeConfig setting = read(start + R"("rope_parameters": {"rope_type": "linear",
      "rope_theta": 1e6, "factor": 2}}}')");
  EXPECT_EQ(setting.max_length, 65536);
  EXPECT_EQ(std::get<Linear>(std::get<Stretch>(setting.scaling.stretch)).factor, 2);
  const RopeConfig both = read(start + R"("max_position_embeddings": 32768}}')");
  EXPECT_EQ(both.max_length, 32768);
  EXPECT_THAT(both.scaling.warnings, Contains(HasSubstr("--max-model-len says 65536")));
  EXPECT_EQ(read(R"(vllm serve m --rope-theta 500 --hf-overrides '{"text_config": {}}')",
                 {.head_dim = 128})
                .base,
            500);
  EXPECT_THAT(
      [] {
        read(R"(vllm m --rope-theta 500 --hf-overrides '{"text_config": {"rope_theta": 1e4}}')");
      },
      ThrowsMessage<Error>(HasSubstr("flags: --rope-theta: expected none beside another")));
}

TEST(EngineFacts, CarryVersions) {
  EXPECT_THAT(engine_fact("transformers.score_scale"), HasSubstr("transformers#47435"));
  EXPECT_THAT(engine_fact("llama.cpp.truncate"), HasSubstr("0c1e57098"));
  EXPECT_THAT([] { engine_fact("frob"); }, ThrowsMessage<Error>(HasSubstr("expected a fact")));
}

}  // namespace
}  // namespace sextant::testing
