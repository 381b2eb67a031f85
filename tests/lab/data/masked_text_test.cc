#include "sextant/lab/data/masked_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "sextant/base/error.h"
#include "sextant/lab/data/retrieval_task.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string text_of(size_t length) {
  std::string text;
  for (size_t n = 0; n < length; ++n) text += static_cast<char>('a' + n * n % 23);
  return text;
}

// 400 sequences of 128 bytes. The shares of BERT's recipe, with room for five standard deviations.
TEST(MaskedText, AsksForTheShareOfBytesThatTheRecipeSays) {
  constexpr size_t kLength = 128;
  const std::string text = text_of(kLength);
  double bytes = 0, asked = 0, masked = 0, kept = 0, shorter = 0;
  for (uint64_t n = 0; n < 400; ++n) {
    const MaskedText one = masked_training_text(text, 7, n);
    ASSERT_EQ(one.tokens.size(), kLength);
    ASSERT_EQ(one.answers.size(), kLength);
    const auto end =
        static_cast<size_t>(std::ranges::find(one.tokens, kPaddingToken) - one.tokens.begin());
    shorter += end < kLength ? 1 : 0;
    EXPECT_GE(end, kLength / 4);
    bytes += static_cast<double>(end);
    for (size_t at = 0; at < kLength; ++at) {
      if (at >= end) {
        EXPECT_EQ(one.tokens[at], kPaddingToken);
        EXPECT_EQ(one.answers[at], kNotAsked);
      } else if (one.answers[at] == kNotAsked) {
        EXPECT_EQ(one.tokens[at], static_cast<uint8_t>(text[at]));
      } else {
        EXPECT_EQ(one.answers[at], static_cast<uint8_t>(text[at]));
        ++asked;
        masked += one.tokens[at] == kMaskToken ? 1 : 0;
        kept += one.tokens[at] == one.answers[at] ? 1 : 0;
      }
    }
  }
  EXPECT_NEAR(asked / bytes, 0.15, 0.015);
  EXPECT_NEAR(masked / asked, 0.8, 0.025);
  EXPECT_NEAR(kept / asked, 0.1, 0.02);
  EXPECT_NEAR(shorter / 400, 0.1, 0.075);
}

TEST(MaskedText, IsAFunctionOfSeedAndNumber) {
  const std::string text = text_of(64);
  const MaskedText one = masked_training_text(text, 3, 5);
  EXPECT_EQ(one.tokens, masked_training_text(text, 3, 5).tokens);
  EXPECT_NE(one.tokens, masked_training_text(text, 3, 6).tokens);
  EXPECT_NE(one.tokens, masked_training_text(text, 4, 5).tokens);
}

TEST(MaskedText, AsksForSomethingInEverySequence) {
  for (uint64_t n = 0; n < 200; ++n) {
    const MaskedText one = masked_training_text("abcd", 0, n);
    EXPECT_TRUE(std::ranges::any_of(one.answers, [](int64_t at) { return at != kNotAsked; }));
  }
  EXPECT_THAT([] { masked_training_text("a", 0, 0); },
              ThrowsMessage<Error>(HasSubstr("length: expected at least 2, but got 1")));
}

TEST(PermutedText, AsksForTheLastSixthOfARandomOrder) {
  const std::string text = text_of(60);
  const PermutedText one = permuted_training_text(text, 1, 0);
  std::vector<int64_t> ranks = one.order;
  std::ranges::sort(ranks);
  for (size_t at = 0; at < text.size(); ++at) {
    EXPECT_EQ(ranks[at], static_cast<int64_t>(at));
    EXPECT_EQ(one.tokens[at], static_cast<uint8_t>(text[at]));
    EXPECT_EQ(one.answers[at], one.order[at] >= 50 ? one.tokens[at] : kNotAsked);
  }
  EXPECT_NE(one.order, permuted_training_text(text, 1, 1).order);
  EXPECT_NE(one.order, permuted_training_text(text, 2, 0).order);
}

TEST(MaskedText, EachPassOfATestHidesOneOfSevenBytes) {
  const std::vector<int64_t> passes = passes_of_block(100, 2);
  ASSERT_EQ(passes.size(), 100);
  for (size_t first = 0; first + kMaskPasses <= passes.size(); first += kMaskPasses) {
    const std::set<int64_t> different(passes.begin() + static_cast<int64_t>(first),
                                      passes.begin() + static_cast<int64_t>(first) + kMaskPasses);
    EXPECT_EQ(different.size(), kMaskPasses);
  }
  EXPECT_NE(passes, passes_of_block(100, 3));
  const std::vector<int64_t> longer = passes_of_block(200, 2);
  EXPECT_TRUE(std::ranges::equal(passes, std::span(longer).first(100)));
}

}  // namespace
}  // namespace sextant::lab
