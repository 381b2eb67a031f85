// The conversion between rope's options and the fields of a config.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/models/config.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant::hugging_face {

// The reason why config.json cannot express these complete options of rope; "" if it can.
// `partial`: the architecture can rotate a part of each head.
std::string rotary_obstacle(const ModelConfig& config, const nlohmann::json& options, bool partial);

// The RopeConfig of complete options of rope; an NTK stretch becomes the base that it is equal to.
// Throws Error for an invalid stretch.
RopeConfig rope_config_of(const ModelConfig& config, const nlohmann::json& options);

// The rope options of a RopeConfig. A dynamic stretch depends on the sequence length, as in Hugging
// Face.
nlohmann::json rotary_options(const RopeConfig& rope);

}  // namespace sextant::hugging_face
