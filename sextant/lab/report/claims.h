// Claims of the literature (claim_tables/claim.h), compared with the measurements of a survey.
//
// At the scale of a survey a claim holds, fails, stays undecided, or is not decided because a
// method has not learned the task; each outcome is printed with its numbers. Nothing is tuned to
// make a claim hold.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/same_arm.h"
#include "sextant/lab/report/claim.h"
#include "sextant/lab/report/compare.h"
#include "sextant/lab/report/method_result.h"

namespace sextant::lab {

enum class Outcome { kHolds, kFails, kUndecided, kNotLearned };
const char* name(Outcome outcome);  // "holds", "fails", "undecided", "not learned"

struct CheckedClaim {
  Claim claim;
  std::string method, other;  // labels of the arms in the survey; other: empty if there is none
  Measured measured;
  Outcome outcome = Outcome::kUndecided;
  std::vector<std::string> not_learned;  // for kNotLearned: labels of the arms that did not learn
  std::string over = {};                 // the sample as recorded; empty: that of `measured`
};

// Shorter trainings decide nothing: a model must have learned something before its loss can break.
// Sinusoidal positions lose 0.2 nats at 8 L after 250 thousand bytes and 1.3 nats after 800
// thousand.
inline constexpr int64_t kEnoughBytes = 400'000;

// Returns the claims whose arms are all in the survey, in the order of claim_subjects(); empty for
// trainings of fewer than kEnoughBytes. Arms are found by method and options (same_arm.h), with the
// label that the claim uses preferred. A claim with a free option is checked for each value in the
// survey.
//
// A measure x, or the difference of two methods, is compared with a bound c by its 95 % interval
// (compare.h). The interval is over seeds if there are two or more, else over the blocks of the
// test text or over retrieval sequences, which do not show how much another seed would move x.
// A claim is undecided if the interval contains c. It is not decided if an arm has not learned the
// task (findings.h). For a comparison of losses at L one arm that has learned text is enough, and
// any other method may be compared with `none` on text, whatever that has learned.
std::vector<CheckedClaim> check_claims(std::span<const MethodResult> methods,
                                       const Settings& settings,
                                       const OptionDefaults& defaults = {});

struct ClaimWords {
  std::string measure;  // "change of the sliding loss of alibi"
  std::string value;    // "+0.009 ± 0.004": mean and half the width of the 95 % interval
  std::string over;     // "over 64 blocks": the sample of that interval
  std::string bound;    // "below 0.1": the claimed bound
  std::string reason;   // "binary has not learned the task": for kNotLearned, else empty
};
ClaimWords words(const CheckedClaim& checked);

// "below 0.1"
std::string bound_of(const Claim& claim);
// "change of the sliding loss of alibi, minus that of rope", with the given names of the arms
std::string measure_of(const Claim& claim, const std::string& method, const std::string& other);

// Plain text, two lines per claim; empty if there are no claims.
std::string claims_text(std::span<const CheckedClaim> claims);

}  // namespace sextant::lab
