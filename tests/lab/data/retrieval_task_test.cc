#include "sextant/lab/data/retrieval_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

bool is_pair(int64_t token) { return token < kFirstNoise; }
bool is_question(int64_t token) { return token >= kFirstQuestion && token < kFirstAnswer; }

// Checks that the answer of each question is the value of an earlier pair with the same key, and
// that no other token has an answer. Returns the distances from questions to their pairs.
std::vector<int64_t> expect_answerable(const PairText& text) {
  std::vector<int64_t> distances;
  std::map<int64_t, std::pair<int64_t, int64_t>> seen;  // key -> value, index
  for (size_t n = 0; n < text.tokens.size(); ++n) {
    const int64_t token = text.tokens[n], place = static_cast<int64_t>(n);
    EXPECT_GE(token, 0);
    EXPECT_LT(token, kFirstAnswer);
    if (is_pair(token)) {
      const bool first =
          seen.emplace(token / kPairValues, std::pair(token % kPairValues, place)).second;
      EXPECT_TRUE(first) << "a key stands twice";
    }
    if (!is_question(token)) {
      EXPECT_EQ(text.answers[n], kNotAsked);
      continue;
    }
    const auto found = seen.find(token - kFirstQuestion);
    EXPECT_NE(found, seen.end()) << "asks for what does not stand before";
    if (found == seen.end()) continue;
    EXPECT_EQ(text.answers[n], kFirstAnswer + found->second.first);
    distances.push_back(place - found->second.second);
  }
  return distances;
}

TEST(RetrievalTask, TrainingTextsCanBeAnsweredAndEndWithAQuestion) {
  std::set<int64_t> distances;
  for (uint64_t n = 0; n < 500; ++n) {
    const PairText text = pair_training_text(64, 3, n);
    ASSERT_EQ(text.tokens.size(), 64);
    ASSERT_EQ(text.answers.size(), 64);
    EXPECT_TRUE(is_question(text.tokens.back()));
    const auto pairs = std::ranges::count_if(text.tokens, is_pair);
    EXPECT_GE(pairs, 2);
    EXPECT_LE(pairs, 8);
    for (const int64_t distance : expect_answerable(text)) distances.insert(distance);
  }
  EXPECT_EQ(distances.size(), 63) << "every distance within the length occurs";
}

TEST(RetrievalTask, TestTextsAskOnceAtTheDistanceAskedFor) {
  for (const int64_t length : {16, 64, 256}) {
    for (const int64_t distance : {int64_t{1}, int64_t{7}, length / 2, length - 1}) {
      for (uint64_t n = 0; n < 20; ++n) {
        const PairText text = pair_test_text(length, distance, 0, n);
        ASSERT_EQ(text.tokens.size(), static_cast<size_t>(length));
        EXPECT_EQ(std::ranges::count_if(text.tokens, is_pair), kTestPairs);
        EXPECT_THAT(expect_answerable(text), testing::ElementsAre(distance));
      }
    }
  }
}

TEST(RetrievalTask, ATextIsAFunctionOfSeedAndNumber) {
  EXPECT_EQ(pair_training_text(64, 1, 5).tokens, pair_training_text(64, 1, 5).tokens);
  EXPECT_NE(pair_training_text(64, 1, 5).tokens, pair_training_text(64, 1, 6).tokens);
  EXPECT_NE(pair_training_text(64, 1, 5).tokens, pair_training_text(64, 2, 5).tokens);
  EXPECT_NE(pair_test_text(64, 9, 1, 5).tokens, pair_test_text(64, 9, 1, 6).tokens);
}

TEST(RetrievalTask, RefusesWhatCannotBe) {
  EXPECT_THAT([] { pair_training_text(15, 0, 0); },
              ThrowsMessage<Error>(HasSubstr("length: expected at least 16, but got 15")));
  EXPECT_THAT([] { pair_test_text(64, 64, 0, 0); },
              ThrowsMessage<Error>(HasSubstr("distance: expected 1 to 63, but got 64")));
}

}  // namespace
}  // namespace sextant::lab
