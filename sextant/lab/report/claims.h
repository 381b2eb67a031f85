// Claims of the literature, compared with the measurements of a survey.
//
// A claim is an inequality between measures of one or two methods, with its source. At the scale of
// a survey it holds, fails or stays undecided; each outcome is printed with its numbers. Nothing is
// tuned to make a claim hold.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sextant/lab/report/compare.h"
#include "sextant/lab/report/method_result.h"

namespace sextant::lab {

// The measure of a method, minus that of another if there is one, is below or above a bound.
struct Claim {
  const char* text = "";    // "ALiBi holds past the training length"
  const char* source = "";  // "Press et al. 2022 (arXiv 2108.12409)"
  Measure measure = Measure::kChange;
  const char* method = "";
  const char* other = "";  // empty if the claim is about one method
  bool below = true;
  double bound = 0;
};

enum class Outcome { kHolds, kFails, kUndecided };
const char* name(Outcome outcome);  // "holds", "fails", "undecided"

struct CheckedClaim {
  Claim claim;
  Measured measured;
  Outcome outcome = Outcome::kUndecided;
};

// Shorter trainings decide nothing: a model must have learned something before its loss can break.
// Sinusoidal positions lose 0.2 nats at 8 L after 250 thousand bytes and 1.3 nats after 800
// thousand.
inline constexpr int64_t kEnoughBytes = 400'000;

// Returns the claims whose methods are all in the survey under their plain names, in a fixed order;
// empty for trainings of fewer than kEnoughBytes.
//
// A measure x, or the difference of two methods, is compared with a bound c by its 95 % interval
// (compare.h). The interval is over seeds if there are two or more, else over the blocks of the
// test text or over retrieval sequences, which do not show how much another seed would move x.
// A claim is undecided if the interval contains c.
std::vector<CheckedClaim> check_claims(std::span<const MethodResult> methods,
                                       const Settings& settings);

struct ClaimWords {
  std::string measure;  // "change of the sliding loss of alibi"
  std::string value;    // "+0.009 ± 0.004": mean and half the width of the 95 % interval
  std::string over;     // "over 64 blocks": the sample of that interval
  std::string bound;    // "below 0.1": the claimed bound
};
ClaimWords words(const CheckedClaim& checked);

// Plain text, two lines per claim; empty if there are no claims.
std::string claims_text(std::span<const CheckedClaim> claims);

}  // namespace sextant::lab
