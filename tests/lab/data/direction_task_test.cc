#include "sextant/lab/data/retrieval_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

bool is_cue(int64_t token) { return token < kCues; }

// Checks that each mark has one cue on either side, at the same distance, and the left one as its
// tag. Returns these distances.
std::vector<int64_t> gaps_of(const DirectionText& text) {
  std::vector<int64_t> gaps;
  const auto length = static_cast<int64_t>(text.tokens.size());
  const auto at = [&](int64_t place) { return text.tokens[static_cast<size_t>(place)]; };
  for (int64_t place = 0; place < length; ++place) {
    if (at(place) != kMark) {
      EXPECT_EQ(text.tags[static_cast<size_t>(place)], kNotAsked);
      continue;
    }
    int64_t gap = 0;
    for (int64_t apart = 1; apart <= kMostGap; ++apart) {
      EXPECT_EQ(is_cue(at(place - apart)), is_cue(at(place + apart)));
      if (!is_cue(at(place - apart))) continue;
      EXPECT_EQ(gap, 0) << "two cues on a side";
      gap = apart;
      EXPECT_EQ(text.tags[static_cast<size_t>(place)], at(place - apart));
      EXPECT_NE(at(place - apart), at(place + apart));
    }
    EXPECT_GT(gap, 0);
    gaps.push_back(gap);
  }
  return gaps;
}

TEST(DirectionTask, TagsEachMarkByItsLeftCue) {
  std::map<int64_t, int> counts;
  std::set<int64_t> firsts;
  for (uint64_t n = 0; n < 100; ++n) {
    const DirectionText text = direction_training_text(64, 5, n);
    const std::vector<int64_t> gaps = gaps_of(text);
    EXPECT_EQ(gaps.size(), 64 / kMarkField);
    for (const int64_t gap : gaps) ++counts[gap];
    EXPECT_EQ(text.tokens[static_cast<size_t>(text.asked)], kMark);
    firsts.insert(text.asked % kMarkField);
  }
  EXPECT_EQ(counts.size(), kMostGap);
  EXPECT_GT(firsts.size(), 1) << "marks stand at multiples";
}

TEST(DirectionTask, TestsHaveOneDistance) {
  for (int64_t gap = 1; gap <= kMostGap; ++gap) {
    const DirectionText text = direction_test_text(40, gap, 3);
    EXPECT_THAT(gaps_of(text), testing::Each(gap));
    EXPECT_EQ(text.tokens, direction_test_text(40, gap, 3).tokens);
    EXPECT_NE(text.tokens, direction_test_text(40, gap, 4).tokens);
  }
}

TEST(DirectionTask, RefusesLengthsAndGapsThatDoNotFit) {
  EXPECT_THAT([] { direction_training_text(8, 0, 0); },
              ThrowsMessage<Error>(HasSubstr("length: expected at least 9, but got 8")));
  EXPECT_THAT([] { direction_test_text(64, 5, 0); },
              ThrowsMessage<Error>(HasSubstr("gap: expected 1 to 4, but got 5")));
}

}  // namespace
}  // namespace sextant::lab
