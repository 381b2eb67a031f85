#include "sextant/lab/data/direction_task.h"

#include <string>

#include "sextant/base/error.h"
#include "sextant/base/random.h"
#include "sextant/lab/data/retrieval_task.h"

namespace sextant::lab {
namespace {

constexpr uint64_t kDirectionTestSeed = 0;  // training uses another random stream

// gap: of every mark, or 0: drawn for each.
DirectionText text_of(int64_t length, int64_t gap, const CounterRandom& random, uint64_t n) {
  if (length < kMarkField) {
    fail("direction: length: expected at least " + std::to_string(kMarkField) + ", but got " +
         std::to_string(length));
  }
  uint64_t next = n << 32;
  const auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(limit), next++));
  };
  DirectionText text;
  for (int64_t place = 0; place < length; ++place) {
    text.tokens.push_back(kFirstDirectionNoise + below(kDirectionNoises));
    text.tags.push_back(kNotAsked);
  }
  const int64_t fields = length / kMarkField;
  // The positions that no field covers come first or last, so that marks do not stand at multiples.
  const int64_t first = below(length - fields * kMarkField + 1);
  for (int64_t field = 0; field < fields; ++field) {
    const int64_t mark = first + field * kMarkField + kMostGap;
    const int64_t apart = gap > 0 ? gap : 1 + below(kMostGap);
    const int64_t left = below(kCues);
    const int64_t right = (left + 1 + below(kCues - 1)) % kCues;
    text.tokens[static_cast<size_t>(mark)] = kMark;
    text.tokens[static_cast<size_t>(mark - apart)] = left;
    text.tokens[static_cast<size_t>(mark + apart)] = right;
    text.tags[static_cast<size_t>(mark)] = left;
  }
  text.asked = first + below(fields) * kMarkField + kMostGap;
  return text;
}

}  // namespace

DirectionText direction_training_text(int64_t length, uint64_t seed, uint64_t n) {
  return text_of(length, 0, CounterRandom(seed, "direction"), n);
}

DirectionText direction_test_text(int64_t length, int64_t gap, uint64_t n) {
  if (gap < 1 || gap > kMostGap) {
    fail("direction: gap: expected 1 to " + std::to_string(kMostGap) + ", but got " +
         std::to_string(gap));
  }
  return text_of(length, gap,
                 CounterRandom(kDirectionTestSeed, "direction/test/" + std::to_string(gap)), n);
}

}  // namespace sextant::lab
