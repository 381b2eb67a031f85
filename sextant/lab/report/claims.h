// Claims of the literature (claims.json), compared with the measurements of a survey.
//
// At the scale of a survey a claim holds, fails, stays undecided, or is not decided because a
// method has not learned the task; each outcome is printed with its numbers. Nothing is tuned to
// make a claim hold.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/same_arm.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/compare.h"
#include "sextant/lab/report/method_result.h"

namespace sextant::lab {

// A claim is an inequality between a measure of one arm, or its difference between two arms, and a
// bound. An arm is written as on the command line, with options, some of them free:
//
//   tener:scaled=true           the method with an option
//   pi:tune=N                   any number of steps, the same for both arms of a claim
//   binary:drop_channels=K      any number of channels, likewise
//   transformer-xl:memory=M     any memory
//
// A bound is a number or the name of a rule of the verdicts (method_result.h): "holds", "breaks",
// "retrieves", or "same" (kSameLoss). A claim is checked in surveys that have its arms. Claims
// contradict one another where the literature does.
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
  std::vector<Claim> claims = {};
};

// All subjects, sorted by name.
std::span<const ClaimSubject> claim_subjects();

// Differences of a loss up to here, about 1 % of it, count as none where a claim says that
// something makes no difference.
inline constexpr double kSameLoss = 0.02;

// The arms of a claim, with values of the free options; other: empty if there is none.
struct ClaimedArms {
  std::string method, other;
};

// Returns the arms of a claim as it names them; or, if they have a free option, once for each value
// that it has in `arms`, in rising order.
std::vector<ClaimedArms> instances(const Claim& claim, std::span<const Arm> arms);

// The identity (same_arm.h) of an arm as a claim names it, on this task. nullopt for an arm that
// does not run on the task.
std::optional<nlohmann::json> claimed_identity(const std::string& arm, Task task,
                                               const Settings& settings);

// The arms to run for the claims of a survey's objective, each once, in the order of the claims.
// only_open: of those that belong to an open question. Free options have the values kOpenTune,
// kOpenChannels and L.
std::vector<std::string> arms_of_claims(bool only_open, const Settings& settings);

// 5 % of the steps of the default training.
inline constexpr int64_t kOpenTune = 40;
// The notes' question is about one lost digit.
inline constexpr int64_t kOpenChannels = 1;

enum class Outcome { kHolds, kFails, kUndecided, kNotLearned };
const char* name(Outcome outcome);  // "holds", "fails", "undecided", "not learned"

struct CheckedClaim {
  Claim claim;
  std::string method = {}, other = {};  // labels in the survey; other: empty if there is none
  Measured measured = {};
  Outcome outcome = Outcome::kUndecided;
  std::vector<std::string> not_learned = {};  // for kNotLearned: labels of these arms
  std::string over = {};                      // the sample as recorded; empty: that of `measured`
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
