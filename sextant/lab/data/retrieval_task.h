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

// The direction task: tag each mark by what stands on its left.
//
// TENER's argument (Yan et al. 2019, arXiv 1911.04474, section 3.2): to name an entity a model must
// know on which side of a word its neighbours stand, and a dot product of sinusoids, like any
// function of the absolute distance, does not say it. Here a sequence is noise with marks; each
// mark has a cue on either side at the same distance, 1 to 4 positions, and its tag is the left
// cue:
//
//   n3 c5 n7 MARK n1 c2 n9         -> tag 5
//
// Without the causal mask an encoding whose effect is the same in both directions sees two cues
// that only the direction tells apart. It can learn that the tag is one of the two, and is right
// half of the time. A model whose encoding tells left from right finds every tag.
inline constexpr int64_t kCues = 16, kDirectionNoises = 16;
inline constexpr int64_t kMostGap = 4;  // from a mark to its cues
// Token ids: cues, noise, the mark. Tags are the ids of cues.
inline constexpr int64_t kFirstDirectionNoise = kCues;
inline constexpr int64_t kMark = kFirstDirectionNoise + kDirectionNoises;
inline constexpr int64_t kDirectionVocabulary = kMark + 1;

// The positions of a mark and its cues at the largest distance; sequences consist of such fields.
inline constexpr int64_t kMarkField = 2 * kMostGap + 1;

struct DirectionText {
  std::vector<int64_t> tokens;  // [length]
  std::vector<int64_t> tags;    // [length]: the tag at marks, elsewhere kNotAsked
  int64_t asked = 0;            // the position of one of the marks, which tests ask for
};

// The n-th training sequence of a seed: a mark in each field of kMarkField positions, with cues at
// random distances; two cues of a mark differ. length: kMarkField or more.
DirectionText direction_training_text(int64_t length, uint64_t seed, uint64_t n);

// The n-th test sequence, in which the cues of every mark are `gap` positions away. Sequences of
// different gaps are independent. gap: 1 to kMostGap.
DirectionText direction_test_text(int64_t length, int64_t gap, uint64_t n);

}  // namespace sextant::lab
