// What a config.json says of layers beside their rotation: windows, chunks, and layers that turn nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sextant/setting/fields.h"
#include "sextant/setting/setting.h"

namespace sextant {

// Writes it into the settings of that configuration, whose fields are `fields`. Throws Error that names the
// field if one is out of range.
void read_layers(const nlohmann::json& config, Fields& fields,
                 std::vector<RotarySetting>& settings);

}  // namespace sextant
