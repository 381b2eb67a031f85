// Warnings about values without the effect that they promise. Other warnings are about engines that
// treat a sound configuration differently.
#pragma once

#include <string>
#include <vector>

#include "sextant/rope_config/rope_config.h"

namespace sextant {

// These warnings of a group, in their order.
std::vector<std::string> doubts_of(const RopeConfig& config);

// Warnings about a model's stretches that depend on all of its layers.

// Warns about a stretch that affects no layer with visibility beyond the training length, since it
// is useless. The warning is added to the first group with the stretch.
void warn_of_idle_stretch(std::vector<RopeConfig>& configs);

}  // namespace sextant
