// Warnings about values without the effect that they promise. Other warnings are about engines that
// treat a sound configuration differently.
#pragma once

#include <string>
#include <vector>

#include "sextant/rope_config/rope_config.h"

namespace sextant {

// These warnings of a group, in their order.
std::vector<std::string> doubts_of(const RopeConfig& config);

}  // namespace sextant
