// Recognition of an arm by method and options instead of by label.
//
// An arm is the wanted one if all that decides its results is equal, apart from seed and task: the
// method, its options, the options of the survey (Arm), and the arm that trained its weights.
// Options that are not wanted may be given with their default values: `shaw:clip=16` is `shaw`, as
// 16 is the default. An arm of a file may have any label.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

// Returns the default options of a method as a JSON object, "{}" for an unknown method. It is
// called only for arms with options that are not wanted. An empty function stands for unknown
// defaults: no option equals its default then.
using OptionDefaults = std::function<std::string(const std::string& method)>;

// The fields of an arm that decide its results. `trained` is the arm that trained its weights, or
// null if it trains its own.
nlohmann::json identity_of(const Arm& arm, const Arm* trained);

// Whether an arm is the wanted one, both as identities. `wanted` has no option with its default
// value, except for those that every arm of its method gets from the survey.
bool is_wanted(const nlohmann::json& identity, const nlohmann::json& wanted,
               const OptionDefaults& defaults);

}  // namespace sextant::lab
