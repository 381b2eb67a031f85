// One-hop retrieval, the small task of surveys: can a model still find a token far back?
// `sextant retrieve` asks checkpoints about texts instead (report/retrieval_scores.h).
//
// Loss on text does not show this for models of a survey's size, which gain nothing from more than
// a hundred bytes of context. Here a sequence is noise with a few tokens that each carry a key and
// a value, and question tokens that each name a key; the answer is the value of that key's token:
//
//   n3 n7 (k2 v9) n1 n1 (k5 v0) n4 n9 ?k2          -> v9
//
// One token carries both key and value, so a single attention step finds it; two hops (key, then
// the token after it) are not learned in a minute. A model of two layers learns this task in 400
// steps with every encoding. Its accuracy at distances and lengths beyond training separates
// encodings whose losses on text are the same.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant::lab {

inline constexpr int64_t kPairKeys = 16, kPairValues = 16, kPairNoises = 16;
// Token ids: pairs (key * kPairValues + value), noise, questions by key, answers by value.
inline constexpr int64_t kFirstNoise = kPairKeys * kPairValues;
inline constexpr int64_t kFirstQuestion = kFirstNoise + kPairNoises;
inline constexpr int64_t kFirstAnswer = kFirstQuestion + kPairKeys;
inline constexpr int64_t kPairVocabulary = kFirstAnswer + kPairValues;

inline constexpr int64_t kNotAsked = -100;  // Decoder::losses skips these targets

inline constexpr int64_t kShortestPairText = 16;

struct PairText {
  std::vector<int64_t> tokens;   // [length]
  std::vector<int64_t> answers;  // [length]: the answer at questions, elsewhere kNotAsked
};

// The n-th training sequence of a seed: 2 to 8 pairs with different keys at random positions, and
// questions at one eighth of the other positions, each about an earlier pair; the last token is a
// question. length: 16 or more.
PairText pair_training_text(int64_t length, uint64_t seed, uint64_t n);

inline constexpr int64_t kTestPairs = 6;

// The n-th test sequence: 6 pairs and one question, the last token, about the pair `distance`
// tokens before it; the other five pairs are at random positions. length: 16 or more; distance: 1
// to length - 1.
PairText pair_test_text(int64_t length, int64_t distance, uint64_t seed, uint64_t n);

}  // namespace sextant::lab
