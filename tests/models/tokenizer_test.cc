#include "sextant/models/hugging_face/tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace sextant::hugging_face {
namespace {

using nlohmann::json;

// The characters are those of GPT-2's bytes_to_unicode; tests/python loads them with transformers.
TEST(Tokenizer, EachByteIsItsOwnToken) {
  const json vocabulary = json::parse(byte_tokenizer()).at("model").at("vocab");
  std::set<int> tokens;
  for (const auto& [character, token] : vocabulary.items()) tokens.insert(token.get<int>());
  EXPECT_EQ(vocabulary.size(), 256);
  EXPECT_EQ(tokens.size(), 256);
  EXPECT_EQ(*tokens.begin(), 0);
  EXPECT_EQ(*tokens.rbegin(), 255);
  EXPECT_EQ(vocabulary.at("A"), 'A');
  EXPECT_EQ(vocabulary.at("\u0120"), ' ');
  EXPECT_EQ(vocabulary.at("\u010a"), '\n');
  EXPECT_EQ(vocabulary.at("\u00e9"), 0xE9);
  EXPECT_EQ(vocabulary.at("\u0143"), 0xAD);
}

}  // namespace
}  // namespace sextant::hugging_face
