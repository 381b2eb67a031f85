// Reading a config.json: errors name the key, and warnings name fields that engines read
// differently.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/rope_config/read_config.h"
#include "sextant/rope_config/rope_scaling.h"
#include "tests/rope_config/published_configs.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

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
      {R"({"head_dim": 64, "rope_theta": 1e4, "num_attention_heads": 32,)"
       R"( "num_key_value_heads": 5})",
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
  EXPECT_EQ(read_rope_config_bytes("\xEF\xBB\xBF" + plain, {}).configs.at(0).base, 10000);
  EXPECT_THAT(
      [] { read_rope_config_bytes(R"({"head_dim": 64, "rope_theta": 1, "rope_theta": 2})", {}); },
      ThrowsMessage<Error>(HasSubstr("config.json: \"rope_theta\": expected once")));
  EXPECT_EQ(read_rope_config_bytes(R"({"head_dim": 64, "rope_parameters": {
      "full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}})",
                                   {})
                .configs.size(),
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

TEST(RopeScaling, ErrorsNameTheKey) {
  const Wrong all[] = {
      {R"({"type": "linear"})", "factor: expected a number from 1"},
      {R"({"type": "linear", "factor": 0.5})", "factor: expected a number from 1"},
      {R"({"type": "linear", "factor": 1e30})", "factor: expected a number from 1"},
      {R"({"type": "linear", "factor": "4"})", "factor: expected a number from 1"},
      {R"({"factor": 4})", "rope_type: expected the name of a scaling"},
      {R"({"type": "warp", "factor": 4})", "type: expected one of"},
      {R"({"type": "linear", "factor": 4, "beta_fats": 32})", "\"beta_fats\": expected a field"},
      {R"({"type": "yarn", "factor": 4, "original_max_position_embeddings": 0})",
       "original_max_position_embeddings: expected an integer from 1"},
      {R"({"type": "yarn", "factor": 4, "beta_fast": 0})", "beta_fast: expected"},
      {R"({"type": "yarn", "factor": 4, "truncate": 1})", "truncate: expected true or false"},
      {R"({"type": "llama3", "factor": 8, "original_max_position_embeddings": 8192})",
       "low_freq_factor: expected a number"},
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

// `linear` is Hugging Face's word, and what files have.
TEST(RopeScaling, PiIsLinearWhereAUserTypesItAndUnknownInFiles) {
  const auto typed = [](const char* words) {
    return read_scaling(scaling_of_words(words, "stretch"),
                        {.base = 1e4, .pairs = 8, .original_length = 64}, "stretch");
  };
  EXPECT_TRUE(typed("pi*8").stretch == typed("linear*8").stretch);
  EXPECT_EQ(typed("pi*8").type, "linear");
  EXPECT_TRUE(typed("dynamic-pi").stretch == typed("dynamic-linear").stretch);
  EXPECT_EQ(typed("dynamic-pi").type, "dynamic-linear");
  EXPECT_THAT([&] { typed("bend*8"); }, ThrowsMessage<Error>(HasSubstr(", pi")));
  EXPECT_THAT(
      [] {
        read_rope_config_bytes(R"({"head_dim": 4, "rope_theta": 1e4, "rope_scaling":
            {"rope_type": "pi", "factor": 8}})",
                               {});
      },
      ThrowsMessage<Error>(HasSubstr("rope_type: expected one of")));
}

TEST(RopeScaling, WarnsOfWhatEnginesReadDifferently) {
  const auto warnings = [](const std::string& scaling) {
    const std::string config =
        R"({"head_dim": 64, "rope_theta": 1e4, "max_position_embeddings": 8192, "rope_scaling": )" +
        scaling + "}";
    return read_rope_config_bytes(config, {}).configs[0].scaling.warnings;
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
  EXPECT_THAT(rope("gpt-oss").scaling.warnings, Contains(HasSubstr("truncate is false")));
  EXPECT_THAT(rope("deepseek-v3").scaling.warnings, Contains(HasSubstr("deepseek_v2")));
  EXPECT_THAT(rope("internlm2").scaling.warnings,
              Not(Contains(HasSubstr("original_max_position_embeddings is missing"))));
}

}  // namespace
}  // namespace sextant::testing
