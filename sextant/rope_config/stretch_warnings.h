// Warnings about a model's stretches that depend on all of its layers.
#pragma once

#include <vector>

#include "sextant/rope_config/rope_config.h"

namespace sextant {

// Warns about a stretch that affects no layer with visibility beyond the training length, since it
// is useless. The warning is added to the first group with the stretch.
void warn_of_idle_stretch(std::vector<RopeConfig>& configs);

}  // namespace sextant
