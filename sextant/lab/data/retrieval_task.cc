// Every sequence draws its keys, values and places from a counter and its number, so that any
// sequence can be made alone.
#include "sextant/lab/data/retrieval_task.h"

#include <algorithm>
#include <string>

#include "sextant/base/error.h"
#include "sextant/base/random.h"

namespace sextant::lab {
namespace {

constexpr int64_t kFewestPairs = 2, kMostPairs = 8;
constexpr int64_t kOthersPerQuestion = 8;

// The random numbers of one sequence, in order.
class Draws {
 public:
  Draws(uint64_t seed, const char* stream, uint64_t n) : random_(seed, stream), next_(n << 32) {}

  int64_t below(int64_t limit) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(limit), next_++));
  }

  // Returns `count` different numbers below `limit`.
  std::vector<int64_t> different(int64_t count, int64_t limit) {
    std::vector<int64_t> numbers;
    while (static_cast<int64_t>(numbers.size()) < count) {
      const int64_t number = below(limit);
      if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
    }
    return numbers;
  }

 private:
  CounterRandom random_;
  uint64_t next_;
};

struct Pair {
  int64_t place = 0, key = 0, value = 0;
};

// Pairs with different keys at these positions.
std::vector<Pair> pairs_at(const std::vector<int64_t>& places, Draws& draws) {
  const std::vector<int64_t> keys = draws.different(static_cast<int64_t>(places.size()), kPairKeys);
  std::vector<Pair> pairs;
  for (size_t n = 0; n < places.size(); ++n)
    pairs.push_back({.place = places[n], .key = keys[n], .value = draws.below(kPairValues)});
  return pairs;
}

PairText noise_with(const std::vector<Pair>& pairs, int64_t length, Draws& draws) {
  PairText text;
  for (int64_t place = 0; place < length; ++place) {
    text.tokens.push_back(kFirstNoise + draws.below(kPairNoises));
    text.answers.push_back(kNotAsked);
  }
  for (const Pair& pair : pairs)
    text.tokens[static_cast<size_t>(pair.place)] = pair.key * kPairValues + pair.value;
  return text;
}

void ask(PairText& text, int64_t place, const Pair& pair) {
  text.tokens[static_cast<size_t>(place)] = kFirstQuestion + pair.key;
  text.answers[static_cast<size_t>(place)] = kFirstAnswer + pair.value;
}

void check_length(int64_t length) {
  if (length < kShortestPairText)
    fail("retrieval: length: expected at least " + std::to_string(kShortestPairText) +
         ", but got " + std::to_string(length));
}

constexpr uint64_t kDirectionTestSeed = 0;  // training uses another random stream

// gap: of every mark, or 0: drawn for each.
DirectionText text_of(int64_t length, int64_t gap, const CounterRandom& random, uint64_t n) {
  if (length < kMarkField)
    fail("direction: length: expected at least " + std::to_string(kMarkField) + ", but got " +
         std::to_string(length));
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

PairText pair_training_text(int64_t length, uint64_t seed, uint64_t n) {
  check_length(length);
  Draws draws(seed, "pairs", n);
  const int64_t count = kFewestPairs + draws.below(kMostPairs - kFewestPairs + 1);
  std::vector<int64_t> places = draws.different(count, length - 1);
  std::ranges::sort(places);
  const std::vector<Pair> pairs = pairs_at(places, draws);
  PairText text = noise_with(pairs, length, draws);
  int64_t before = 0;  // pairs before `place`
  for (int64_t place = 0; place < length; ++place) {
    const bool last = place == length - 1;
    if (before < count && pairs[static_cast<size_t>(before)].place == place) {
      ++before;
    } else if (before > 0 && (last || draws.below(kOthersPerQuestion) == 0)) {
      ask(text, place, pairs[static_cast<size_t>(draws.below(before))]);
    }
  }
  return text;
}

PairText pair_test_text(int64_t length, int64_t distance, uint64_t seed, uint64_t n) {
  check_length(length);
  if (distance < 1 || distance >= length)
    fail("retrieval: distance: expected 1 to " + std::to_string(length - 1) + ", but got " +
         std::to_string(distance));
  Draws draws(seed, "pairs/test", n);
  const int64_t asked = length - 1 - distance;
  std::vector<int64_t> places = draws.different(kTestPairs - 1, length - 2);
  for (int64_t& place : places) place += place >= asked ? 1 : 0;  // any position but `asked`
  places.push_back(asked);
  const std::vector<Pair> pairs = pairs_at(places, draws);
  PairText text = noise_with(pairs, length, draws);
  ask(text, length - 1, pairs.back());
  return text;
}

DirectionText direction_training_text(int64_t length, uint64_t seed, uint64_t n) {
  return text_of(length, 0, CounterRandom(seed, "direction"), n);
}

DirectionText direction_test_text(int64_t length, int64_t gap, uint64_t n) {
  if (gap < 1 || gap > kMostGap)
    fail("direction: gap: expected 1 to " + std::to_string(kMostGap) + ", but got " +
         std::to_string(gap));
  return text_of(length, gap,
                 CounterRandom(kDirectionTestSeed, "direction/test/" + std::to_string(gap)), n);
}

}  // namespace sextant::lab
