// The candidates for one question of a survey, ranked: which encoding to train with, or how to
// stretch a trained one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/report/compare.h"
#include "sextant/lab/report/method_result.h"

namespace sextant::lab {

struct Candidate {
  std::string label;
  double trained_loss = 0;         // sliding loss at L
  double loss = 0;                 // sliding loss at the longest length
  std::optional<double> accuracy;  // retrieval at the beginning of the longest sequence
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
// are no candidates (learned.h), and neither is `none` as long as it has not: it is the reference.
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

}  // namespace sextant::lab
