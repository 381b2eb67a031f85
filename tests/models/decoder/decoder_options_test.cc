#include "sextant/models/decoder/decoder_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(DecoderOptions, SurviveJson) {
  const DecoderOptions options{.layers = 5,
                               .width = 96,
                               .heads = 6,
                               .key_heads = 2,
                               .mlp_width = 200,
                               .norm = Norm::kRmsNorm,
                               .activation = Activation::kSwiGlu,
                               .norm_epsilon = 1e-6,
                               .tied = false};
  EXPECT_EQ(json(options).get<DecoderOptions>(), options);
}

TEST(DecoderOptions, SayWhichFieldIsWrong) {
  const json good = DecoderOptions{};
  const auto changed = [&](const char* field, const json& value) {
    json options = good;
    options[field] = value;
    return [options] { options.get<DecoderOptions>(); };
  };
  EXPECT_THAT(changed("layers", 0), ThrowsMessage<Error>(HasSubstr("layers: expected at least 1")));
  EXPECT_THAT(changed("layers", 1.5),
              ThrowsMessage<Error>(HasSubstr("layers: expected an integer")));
  EXPECT_THAT(changed("layers", "3"), ThrowsMessage<Error>(HasSubstr("but got \"3\"")));
  EXPECT_THAT(changed("heads", 5),
              ThrowsMessage<Error>(HasSubstr("width: expected a multiple of heads (5)")));
  EXPECT_THAT(changed("key_heads", 3),
              ThrowsMessage<Error>(HasSubstr("heads: expected a multiple of key_heads (3)")));
  EXPECT_THAT(changed("norm", "none"),
              ThrowsMessage<Error>(HasSubstr("expected one of layernorm, rmsnorm, but got none")));
  EXPECT_THAT(changed("depth", 3),
              ThrowsMessage<Error>(HasSubstr("depth: expected no such field")));
  EXPECT_THAT(changed("norm_epsilon", 0.0),
              ThrowsMessage<Error>(HasSubstr("norm_epsilon: expected a number between 0 and 1")));
  EXPECT_THAT(changed("tied", 1), ThrowsMessage<Error>(HasSubstr("tied: expected true or false")));
  json missing = good;
  missing.erase("width");
  EXPECT_THAT([&] { missing.get<DecoderOptions>(); },
              ThrowsMessage<Error>(HasSubstr("width: expected a value, but it is missing")));
  EXPECT_THAT([] { json(3).get<DecoderOptions>(); },
              ThrowsMessage<Error>(HasSubstr("expected an object, but got number")));
}

}  // namespace
}  // namespace sextant
