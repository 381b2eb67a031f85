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

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
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

// The arms that claims name: their identities, their free options, and the list of arms to run.

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

}  // namespace sextant::lab
