// One-hop retrieval: who still finds a token that lies far back?
//
// Text says nothing on this at the size of a survey's models, which gain nothing from more than a
// hundred bytes of context. Here a text is noise, with a few tokens that each carry a key and a
// value, and tokens that ask for a key; the answer to one is the value that stands with its key:
//
//   n3 n7 (k2 v9) n1 n1 (k5 v0) n4 n9 ?k2          -> v9
//
// One token carries both, so a single look back finds it; two hops (key, then the token after it)
// are not learned in a minute. A model of two layers learns this in 400 steps with every encoding,
// and what it finds at distances and lengths beyond training separates encodings whose losses on
// text are the same.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant::lab {

inline constexpr int64_t kPairKeys = 16, kPairValues = 16, kPairNoises = 16;
// Tokens: pairs (key * kPairValues + value), noises, questions by key, answers by value.
inline constexpr int64_t kFirstNoise = kPairKeys * kPairValues;
inline constexpr int64_t kFirstQuestion = kFirstNoise + kPairNoises;
inline constexpr int64_t kFirstAnswer = kFirstQuestion + kPairKeys;
inline constexpr int64_t kPairVocabulary = kFirstAnswer + kPairValues;

inline constexpr int64_t kNotAsked = -100;  // Decoder::losses leaves it out

inline constexpr int64_t kShortestPairText = 16;

struct PairText {
  std::vector<int64_t> tokens;   // [length]
  std::vector<int64_t> answers;  // [length]: of a question its answer, elsewhere kNotAsked
};

// The n-th training text of a seed: 2 to 8 pairs of different keys at random places, and questions
// at an eighth of the others, each for a pair before it; the last token is one. length: 16 or more.
PairText pair_training_text(int64_t length, uint64_t seed, uint64_t n);

inline constexpr int64_t kTestPairs = 6;

// The n-th test text: 6 pairs and one question, the last token, for the pair that stands `distance`
// before it; the other five stand anywhere. length: 16 or more; distance: 1 to length - 1.
PairText pair_test_text(int64_t length, int64_t distance, uint64_t seed, uint64_t n);

}  // namespace sextant::lab
