// config.json of Hugging Face's transformers: rope_theta and rope_scaling (version 4), or
// rope_parameters (version 5), one for all layers or one per kind of layer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// The configurations in a config.json: one, or one per group of layers. Throws an Error that names
// the field; a missing base is an Error and never assumed.
SEXTANT_API std::vector<RopeConfig> read_hugging_face(const nlohmann::json& config,
                                                      const Overrides& overrides = {});

// The scaling as rope_parameters, without rope_theta. Throws Error if Hugging Face has no field for
// it.
SEXTANT_API nlohmann::json scaling_object(const RopeConfig& config);

// `config` (an object, perhaps empty) with the configurations in the fields of version 4 or 5.
// Reading the result gives bitwise the same frequencies.
SEXTANT_API nlohmann::json write_hugging_face(nlohmann::json config,
                                              const std::vector<RopeConfig>& configs, int version);

// Parses JSON; an Error gives the position and the key whose value could not be read. NaN and
// Infinity, which Python writes and JSON lacks, become strings.
SEXTANT_API nlohmann::json parse_json(const std::string& text, const std::string& where);

// The text of a configuration from parse_json(), with NaN and Infinity restored.
SEXTANT_API std::string json_as_python_writes_it(const nlohmann::json& value);

}  // namespace sextant
