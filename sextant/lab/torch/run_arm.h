// Runs an arm from its start, or from where it was interrupted, until result.json is written.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/torch/method.h"

namespace sextant::lab {

std::unique_ptr<Method> method_of(const Arm& arm, const Settings& settings);

// See Plugin.
Ending run_arm(const std::filesystem::path& directory, const Watch& watch);
Ending join_training(const std::string& file, const Watch& watch);

// The expected cost of an arm, from a short measurement.

// See Plugin::cost.
ArmCost cost_of_arm(const Settings& settings, Task task);

}  // namespace sextant::lab
