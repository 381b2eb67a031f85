// The arms that claims name: their identities, their free options, and the list of arms to run.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/claim.h"

namespace sextant::lab {

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
