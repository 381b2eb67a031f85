// A rope's options in the words of a config.json, there and back.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/models/config.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant::hugging_face {

// What keeps config.json from saying these complete options of rope; "" if it can. `partial`: the
// architecture lets a part of each head turn.
std::string rotary_obstacle(const ModelConfig& config, const nlohmann::json& options, bool partial);

// The setting that complete options of rope mean, NTK as the base that it comes to. Throws Error
// where the stretch is not well said.
RopeConfig rope_config_of(const ModelConfig& config, const nlohmann::json& options);

// The options that mean the setting. A stretch that goes by the text goes by its length, as Hugging
// Face's do.
nlohmann::json rotary_options(const RopeConfig& setting);

}  // namespace sextant::hugging_face
