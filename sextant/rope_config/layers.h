// What a config.json says of layers beside their rotation: windows, chunks, and layers that turn nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sextant/rope_config/fields.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// Writes it into the settings of that configuration, whose fields are `fields`. Throws Error that names the
// field if one is out of range.
void read_layers(const nlohmann::json& config, Fields& fields, std::vector<RopeConfig>& settings);

}  // namespace sextant
