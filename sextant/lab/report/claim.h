// Claims of the literature, each with its source: the table claims.json.
// claims.h compares them with the measurements of a survey.
//
// A claim is an inequality between a measure of one arm, or its difference
// between two arms, and a bound. An arm is written as on the command line, with
// options, some of them free:
//
//   tener:scaled=true           the method with an option
//   pi:tune=N                   any number of steps, the same for both arms of
//   a claim binary:drop_channels=K      any number of channels, likewise
//   transformer-xl:memory=M     any memory
//
// A bound is a number or the name of a rule of the verdicts (method_result.h):
// "holds", "breaks", "retrieves", or "same" (kSameLoss). A claim is checked in
// surveys that have its arms. Claims contradict one another where the
// literature does.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sextant/lab/report/compare.h"
#include "sextant/lab/report/method_result.h"

namespace sextant::lab {

enum class Side { kBelow, kAbove };
const char* name(Side side);  // "below", "above"

struct Claim {
  std::string text;    // "ALiBi holds past the training length"
  std::string source;  // "Press et al. 2022 (arXiv 2108.12409)"
  Measure measure = Measure::kChange;
  std::string method;      // an arm
  std::string other = {};  // an arm; empty if the claim is about one arm
  Side side = Side::kBelow;
  double bound = 0;
  std::string question = {};  // the open question of the survey notes that it belongs to, or empty
  Objective objective = Objective::kCausal;  // of the surveys that the claim is about
};

inline bool has_other(const Claim& claim) { return !claim.other.empty(); }

struct ClaimSubject {
  std::string name;  // "absolute positions"
  std::vector<Claim> claims;
};

// All subjects, sorted by name.
std::span<const ClaimSubject> claim_subjects();

// Differences of a loss up to here, about 1 % of it, count as none where a
// claim says that something makes no difference.
inline constexpr double kSameLoss = 0.02;

}  // namespace sextant::lab
