// The expected cost of an arm, from a short measurement.
#pragma once

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/plugin.h"

namespace sextant::lab {

// See Plugin::cost.
ArmCost cost_of_arm(const Settings& settings, Task task);

}  // namespace sextant::lab
