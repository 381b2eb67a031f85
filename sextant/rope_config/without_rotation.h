// Models whose layers do not rotate: the method of their positions, and their windows.
#pragma once

#include <string>
#include <vector>

#include "sextant/rope_config/model_fields.h"

namespace sextant {

// instead: RopeConfig::instead. One group without numbers of layers.
RopeConfig without_rotation(const std::string& instead, ModelFields& fields,
                            const std::string& type);

// The groups of layers of a family that never rotates. They differ in their windows only.
std::vector<RopeConfig> unrotated_layers(const std::string& instead, ModelFields& fields,
                                         const std::string& type);

}  // namespace sextant
