// Warnings about a model's stretches that need all of its layers.
#pragma once

#include <vector>

#include "sextant/rope_config/rope_config.h"

namespace sextant {

// A stretch that reaches no layer which sees beyond the trained length does nothing good. The
// warning goes to the first group that has the stretch.
void warn_of_idle_stretch(std::vector<RopeConfig>& settings);

}  // namespace sextant
