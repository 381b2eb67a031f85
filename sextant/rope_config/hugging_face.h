// config.json of Hugging Face's transformers: rope_theta and rope_scaling (version 4),
// rope_parameters (5), one for all layers or one for each type of layer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/rope_config/rope_config.h"

namespace sextant {

// The settings of a configuration: one, or one for each type of layer. Throws Error that names the
// field; a base that is not there is asked for, never assumed.
std::vector<RopeConfig> read_hugging_face(const nlohmann::json& config,
                                          const Overrides& overrides = {});

// The scaling as rope_parameters (without rope_theta). Throws Error where Hugging Face has no word
// for it.
nlohmann::json scaling_object(const RopeConfig& setting);

// `config` (an object, perhaps empty) with the setting in the words of version 4 or 5. Reading it
// gives the same frequencies, bit by bit.
nlohmann::json write_hugging_face(nlohmann::json config, const std::vector<RopeConfig>& settings,
                                  int version);

// Text to JSON; an error names the place, and the key whose value could not be read. NaN and
// Infinity, which Python writes and JSON does not have, become strings.
nlohmann::json parse_json(const std::string& text, const std::string& where);

// The text of a configuration that parse_json() read, with NaN and Infinity as they were.
std::string json_as_python_writes_it(const nlohmann::json& value);

}  // namespace sextant
