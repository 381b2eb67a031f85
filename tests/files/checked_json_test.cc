#include "sextant/files/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using nlohmann::json;
using testing::ThrowsMessage;

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

void refuses(const std::string& text, const std::string& message) {
  EXPECT_THAT([&] { checked_json(text, "file"); }, ThrowsMessage<Error>(message));
}

TEST(CheckedJson, HasAtMost64Levels) {
  EXPECT_TRUE(checked_json(nested(kDeepestJson), "file").is_array());
  const std::string message =
      "file: expected at most 64 objects and lists within each other, but got more";
  refuses(nested(kDeepestJson + 1), message);
  refuses(std::string(100'000, '['), message);
  std::string objects;
  for (int n = 0; n < 100'000; ++n) objects += "{\"a\":";
  refuses(objects, message);
}

TEST(CheckedJson, SaysWhatItCannotRead) {
  EXPECT_EQ(checked_json(R"({"a": [1, null]})", "file"), json({{"a", {1, nullptr}}}));
  refuses("", "file: expected JSON, but could not read it at byte 0");
  refuses(R"({"a": [1, }})", "file: \"a\": expected JSON, but could not read it at byte 11");
  refuses(R"({"a": 1, "a": 2})", "file: \"a\": expected once, but got two");
  refuses("[1e999]", "file: expected JSON with numbers that are finite as float64, but got 1e999");
}

TEST(JsonOrWord, IsTheWordUnlessItIsJson) {
  EXPECT_EQ(json_or_word("1e6"), json(1e6));
  EXPECT_EQ(json_or_word("[1]"), json({1}));
  EXPECT_EQ(json_or_word("L/2"), json("L/2"));
  EXPECT_EQ(json_or_word("1e999"), json("1e999"));
  EXPECT_EQ(json_or_word(std::string(1000, '[')), json(std::string(1000, '[')));
}

TEST(CheckedJsonObject, IsAnObject) {
  EXPECT_EQ(checked_json_object(R"( {"a": 1})", "options"), json({{"a", 1}}));
  for (const char* other : {"[1]", "3", "word", ""}) {
    EXPECT_THAT(
        [&] { checked_json_object(other, "options"); },
        ThrowsMessage<Error>("options: expected a JSON object, but got " + std::string(other)));
  }
  EXPECT_THAT(
      [] { checked_json_object("{\"a\": 1", "options"); },
      ThrowsMessage<Error>("options: \"a\": expected JSON, but could not read it at byte 7"));
}

}  // namespace
}  // namespace sextant
