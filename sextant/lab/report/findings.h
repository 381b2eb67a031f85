// Everything that a survey's tables, charts, claims, advice and files state, derived once from the
// results of its arms. They take these findings and only print them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/same_arm.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/claims.h"
#include "sextant/lab/report/compare.h"
#include "sextant/lab/report/method_result.h"
#include "sextant/lab/result/result.h"

namespace sextant::lab {

// The rule that a verdict needs a learned task: a model that has learned nothing about the order of
// its context has nothing to lose on longer sequences, and its loss "holds".
//
// Text is learned by a method whose sliding loss at L is below that of the reference, significantly
// (95 %) and by a margin:
//
//   reference            margin          when
//   the method `none`    kBelowNone      if the survey has results of it
//   bigrams (corpus.h)   kBelowBigrams   else, and for `none` itself
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

// The candidates for one question of a survey, ranked: which encoding to train with, or how to
// stretch a trained one.
struct Candidate {
  std::string label;
  double trained_loss = 0;              // sliding loss at L
  double loss = 0;                      // sliding loss at the longest length
  std::optional<double> accuracy = {};  // retrieval at the beginning of the longest sequence
  bool holds = false;

  // True also if retrieval was not tested.
  bool retrieves() const { return accuracy.value_or(1) >= kRetrievesFrom; }
};

// A candidate whose loss at the longest length is not significantly above that of the first.
struct Tie {
  std::string label;
  Measured behind;  // its loss minus that of the first
};

// The lists of candidates are sorted by loss, lowest first. Methods that have not learned a task
// are no candidates, and neither is `none` as long as it has not: it is the reference.
struct Ranking {
  std::optional<Candidate> base;          // the method to stretch; none for encodings to train with
  std::vector<Candidate> all;             // empty only if all methods are left out
  std::vector<Candidate> holding;         // of `all`
  std::vector<Candidate> retrieving;      // of `holding`
  std::vector<Tie> ties;                  // with the first of chosen()
  std::vector<std::string> without_text;  // left out: text was not learned
  std::vector<std::string> without_retrieval;  // left out: others have learned it, these have not
  // Retrieval was tested, and no method has learned it: loss alone decides, and no candidate has an
  // accuracy.
  bool ignores_retrieval = false;

  // `retrieving`, or `holding` if no candidate retrieves; may be empty.
  const std::vector<Candidate>& chosen() const { return retrieving.empty() ? holding : retrieving; }
};

// The ranking of the trained encodings if two or more were trained, then one for each base. Empty
// for trainings of fewer than kEnoughBytes (claims.h): these models have learned too little for a
// break to show.
std::vector<Ranking> rankings(std::span<const MethodResult> methods, const Settings& settings);

struct Findings {
  Settings settings;
  std::vector<ArmResult> results;          // as given, the diverged arms included
  std::vector<MethodResult> methods = {};  // the results grouped by method, with means over seeds
  std::vector<Ranking> rankings = {};      // one for each question that advice.h answers
  std::vector<CheckedClaim> claims = {};
  std::optional<LearningReference> reference = {};  // nullopt: unknown, see LearningReference
  size_t fewest_seeds = 0;                          // of the methods that have any on text
  bool has_intervals = false;                       // some method has several seeds
  double bytes_per_second = 0;  // of a worker that trains on text; 0 if nothing was trained
};

// Facts beside the results, which a survey has and which are not stored in them.
struct Background {
  std::optional<BigramLoss> bigrams = {};  // of the survey's text
  OptionDefaults defaults = {};            // of the methods
};

Findings findings_of(std::span<const ArmResult> results, const Settings& settings,
                     const Background& background = {});

}  // namespace sextant::lab
