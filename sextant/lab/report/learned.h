// The rule that a verdict needs a learned task: a model that has learned nothing about the order of
// its context has nothing to lose on longer sequences, and its loss "holds".
//
// Text is learned by a method whose sliding loss at L is below that of the reference, significantly
// (95 %) and by a margin:
//
//   reference            margin          when
//   the method `none`    kBelowNone      if the survey has results of it
//   bigrams (bigram.h)   kBelowBigrams   else, and for `none` itself
//
// `none` has also learned nothing as long as no other method of the survey is better than it: then
// the survey shows nothing on positions. Without a reference (no `none`, and a caller that has no
// text) it is unknown whether text was learned, and the change alone decides.
//
// Retrieval is learned by a method that finds at least half (kRetrievesFrom) of the pairs at the
// near distance, half of L, in sequences of L. Chance is 1/16; with 128 sequences one half is 20
// standard errors above it.
//
// Direction is learned by a method that tags three quarters (kTellsDirectionFrom) of the marks in
// sequences of L. In surveys of masked bytes bigrams are no reference, and `none` is not judged.
//
// A method that is tested with the weights of another has learned what the other has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sextant/lab/data/bigram.h"
#include "sextant/lab/report/method_result.h"

namespace sextant::lab {

// A method that gained less than the rise that "holds" allows could lose all of it and hold.
inline constexpr double kBelowNone = kHoldsBelow;
// `none` itself is 0.13 nats below bigrams: it knows which bytes occurred before, though not where.
inline constexpr double kBelowBigrams = kBreaksAbove;

// The reference of the methods of a survey, except `none`.
struct LearningReference {
  std::string name;  // "none", or "bigrams"
  double loss = 0;   // at L, mean over seeds
  double margin = 0;
};

// Sets text, retrieval, is_reference and to_reference of each method, and its verdict to
// kNotLearned where text was not learned. bigrams: null if unknown. Returns nullopt without a
// reference.
std::optional<LearningReference> judge(std::vector<MethodResult>& methods, const Settings& settings,
                                       const BigramLoss* bigrams);

// "not significantly, or not by 0.1, below that of none (2.489)": the completion of a sentence on
// the loss at L of a method that has not learned text.
std::string shortfall(const LearningReference& reference);

// The same for a method that has not learned the small task: "less than half of the pairs 32 tokens
// back found in sequences of 64".
std::string small_task_shortfall(const Settings& settings);

}  // namespace sextant::lab
