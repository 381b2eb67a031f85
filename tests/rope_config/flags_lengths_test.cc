// Lengths between flags and the other formats: what is written, and read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sextant/error.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/read_config.h"
#include "sextant/rope_config/write_config.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

RopeConfig setting_of(const std::string& text, const Overrides& overrides = {}) {
  return read_rope_config_bytes(text, overrides).settings.at(0);
}

// Released Gemma 3: vllm/config/model.py does not multiply its length by the factor, either.
TEST(VllmFlags, AreNotAskedForMoreThanAModelWasTrainedOn) {
  const ReadRopeConfig gemma = read_rope_config_bytes(
      R"({"model_type": "gemma3_text", "max_position_embeddings": 131072, "head_dim": 128,
          "num_hidden_layers": 12, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
          "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "sliding_window": 1024})",
      {});
  EXPECT_THAT(write_rope_config(gemma, "vllm"), HasSubstr("--max-model-len 131072"));
  for (const RopeConfig& setting : gemma.settings) {
    const Explained numbers = explain(setting, 0);
    EXPECT_EQ(numbers.trained, 131072);
    EXPECT_EQ(numbers.target, 131072);
  }
  const RopeConfig& full = gemma.settings.at(gemma.settings.at(0).window == 0 ? 0 : 1);
  const Explained numbers = explain(full, 0);
  EXPECT_EQ(numbers.factor, 8);
  EXPECT_EQ(numbers.first_leaving, 131072);
  EXPECT_EQ(explain(full, 262144).first_leaving, 131072);
  const RopeConfig other = setting_of(
      R"({"model_type": "llama", "max_position_embeddings": 4096, "head_dim": 128,
          "rope_theta": 1e6, "rope_scaling": {"rope_type": "linear", "factor": 8.0}})");
  EXPECT_EQ(explain(other, 0).trained, 4096);
  EXPECT_EQ(explain(other, 0).target, 32768);
}

TEST(VllmFlags, GrowingScalingsAreRefused) {
  const ReadRopeConfig dynamic = read_rope_config_bytes(
      R"({"head_dim": 128, "rope_theta": 1e4, "max_position_embeddings": 4096,
          "rope_scaling": {"rope_type": "dynamic", "factor": 2}})",
      {});
  EXPECT_THAT([&] { write_rope_config(dynamic, "vllm"); },
              ThrowsMessage<Error>(HasSubstr("convert: vllm: dynamic: expected a fixed scaling")));
}

// -c and --max-model-len are no max_position_embeddings of a model.
TEST(Convert, LengthsForServingAreNotWrittenAsTrained) {
  const auto written = [](const std::string& line, const std::string& to) {
    return write_rope_config(read_rope_config_bytes(line, {.base = 1e6, .head_dim = 128}), to);
  };
  EXPECT_THAT(written("-m x --rope-scaling none -c 131072", "hf5"),
              Not(HasSubstr("max_position_embeddings")));
  EXPECT_THAT(written("vllm serve x --max-model-len 131072", "hf4"),
              Not(HasSubstr("max_position_embeddings")));
  EXPECT_EQ(setting_of(written("-m x --rope-scaling none -c 131072", "gguf")).max_length, 0);
  const RopeConfig linear =
      setting_of(written("-m x --rope-scaling linear --rope-scale 4 -c 131072", "hf5"));
  EXPECT_EQ(explain(linear, 0).trained, 32768);
  EXPECT_EQ(explain(linear, 0).target, 131072);
  const RopeConfig yarn = setting_of(
      written("-m x --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 131072", "hf5"));
  EXPECT_EQ(yarn.max_length, 131072);
  EXPECT_EQ(explain(yarn, 0).trained, 32768);
}

}  // namespace
}  // namespace sextant::testing
