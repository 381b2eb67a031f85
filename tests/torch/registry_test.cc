// Methods by name and options: known ones are made, others are refused with an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::ThrowsMessage;

TEST(Registry, ListsMethodsByName) {
  std::vector<std::string> names;
  for (const MethodInfo& info : methods()) names.push_back(info.name);
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_THAT(names, IsSupersetOf({"alibi", "learned", "none", "rope", "shaw", "sinusoidal", "t5",
                                   "window"}));
}

TEST(Registry, EveryMethodIsMadeFromItsDefaults) {
  for (const MethodInfo& info : methods()) {
    SCOPED_TRACE(info.name);
    EXPECT_FALSE(info.summary.empty());
    EXPECT_TRUE(nlohmann::json::parse(info.defaults).is_object());
    const ModelShape shape = subject(info.name).shape();
    if (info.grid_option && info.name != "layoutlm") {  // which may have boxes instead
      EXPECT_THAT([&] { make_method(info.name, shape, nullptr); },
                  ThrowsMessage<Error>(HasSubstr("expected [height, width], but got null")));
      continue;
    }
    EXPECT_NE(make_method(info.name, shape, nlohmann::json::parse(info.defaults)), nullptr);
    EXPECT_NE(make_method(info.name, shape, nullptr), nullptr);
  }
}

TEST(Registry, RefusesWhatItDoesNotKnow) {
  const auto fails = [](const char* text, const char* name, const char* options,
                        ModelShape shape = kSmallShape) {
    EXPECT_THAT([&] { method_of(name, shape, options); }, ThrowsMessage<Error>(HasSubstr(text)));
  };
  fails("method: expected one of alibi, ", "alibis", "{}");
  fails("but got \"alibis\"", "alibis", "{}");
  fails("method: expected one of transformer-xl, ", "tranformer_xl", "{}");
  fails(
      "alibi: options: expected any of flavour, future_scale, interpolation, length, max_bias, "
      "train, but got \"bias\"",
      "alibi", R"({"bias": 8})");
  fails("none: options: expected any of none, but got \"base\"", "none", R"({"base": 1})");
  fails("rope: options: expected a JSON object, but got [1]", "rope", "[1]");
  fails("rope: base: expected a number from 0.001 to 1e+30, but got \"1e4\"", "rope",
        R"({"base": "1e4"})");
  fails("rope: base: expected a number", "rope", R"({"base": -1})");
  fails("rope: dim: expected an integer from 0 to 6, but got 8", "rope", R"({"dim": 8})");
  fails("rope: dim: expected an integer", "rope", R"({"dim": 4.0})");
  fails("rope: dim: expected an integer", "rope", R"({"dim": 18446744073709551615})");
  fails("rope: pairing: expected one of \"half-split\", \"interleaved\", but got \"neox\"", "rope",
        R"({"pairing": "neox"})");
  fails("rope: float32_frequencies: expected true or false, but got 1", "rope",
        R"({"float32_frequencies": 1})");
  fails("learned: rows: expected an integer from 1 to", "learned", R"({"rows": 0})");
  fails("learned: rows: expected an integer from 1 to 2147483648, but the model's own size is 0",
        "learned", "{}", {.width = 4});
  fails("window: of: expected a string, but got null", "window", R"({"of": null})");
  fails("but got \"ropes\"", "window", R"({"of": "ropes"})");
  fails("rope: options: expected any of axes, base", "window", R"({"options": {"bass": 1}})");
  fails("model shape: heads: expected at least 1, but got 0", "none", "{}", {.heads = 0});
  fails("model shape: heads: expected a multiple of the 3 key heads", "none", "{}",
        {.heads = 4, .key_heads = 3});
}

}  // namespace
}  // namespace sextant::testing
