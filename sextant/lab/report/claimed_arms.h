// The arms that claims name: their identities, placeholders, and the list of arms to run.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/claim_tables/claim.h"

namespace sextant::lab {

// The kind of a survey with these settings.
SurveyTask task_of(const Settings& settings);

// The arms of a claim, without placeholders; other: empty if there is none.
struct ClaimedArms {
  std::string method, other;
};

// Returns the arms of a claim as it names them; or, if they have a placeholder, once for each value
// that the option has in `arms`, in rising order.
std::vector<ClaimedArms> instances(const Claim& claim, std::span<const Arm> arms);

// The identity (same_arm.h) of an arm as a claim names it, on this task. nullopt for an arm that
// does not run on the task or that this version cannot make.
std::optional<nlohmann::json> claimed_identity(const std::string& arm, Task task,
                                               const Settings& settings);

// The arms to run for the claims of a kind of survey, each once, in the order of the claims:
// `only_open`: of those that belong to an open question. Placeholders have the values kOpenTune,
// kOpenChannels and L. Arms that this version cannot make are left out.
std::vector<std::string> arms_of_claims(SurveyTask task, bool only_open, const Settings& settings);

// 5 % of the steps of the default training.
inline constexpr int64_t kOpenTune = 40;
// An eighth of the default width, so that about 2 of the 16 bits of a binary code are lost.
inline constexpr int64_t kOpenChannels = 16;

}  // namespace sextant::lab
