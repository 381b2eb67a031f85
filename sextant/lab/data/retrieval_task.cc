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
  for (size_t n = 0; n < places.size(); ++n) {
    pairs.push_back({.place = places[n], .key = keys[n], .value = draws.below(kPairValues)});
  }
  return pairs;
}

PairText noise_with(const std::vector<Pair>& pairs, int64_t length, Draws& draws) {
  PairText text;
  for (int64_t place = 0; place < length; ++place) {
    text.tokens.push_back(kFirstNoise + draws.below(kPairNoises));
    text.answers.push_back(kNotAsked);
  }
  for (const Pair& pair : pairs) {
    text.tokens[static_cast<size_t>(pair.place)] = pair.key * kPairValues + pair.value;
  }
  return text;
}

void ask(PairText& text, int64_t place, const Pair& pair) {
  text.tokens[static_cast<size_t>(place)] = kFirstQuestion + pair.key;
  text.answers[static_cast<size_t>(place)] = kFirstAnswer + pair.value;
}

void check_length(int64_t length) {
  if (length < kShortestPairText) {
    fail("retrieval: length: expected at least " + std::to_string(kShortestPairText) +
         ", but got " + std::to_string(length));
  }
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
  if (distance < 1 || distance >= length) {
    fail("retrieval: distance: expected 1 to " + std::to_string(length - 1) + ", but got " +
         std::to_string(distance));
  }
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

}  // namespace sextant::lab
