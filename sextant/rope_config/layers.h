// Groups of layers with the same facts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/rope_config/layer_facts.h"
#include "sextant/rope_config/model_fields.h"

namespace sextant {

struct LayerGroup {
  std::string name;  // the kind of its layers if the model has several kinds; else empty
  LayerFacts facts;
  std::vector<int64_t> layers;  // indices from 0; empty: all, or not known
};

// Returns groups of layers with the same facts: rotating groups first, and among them groups
// without a window first. Layers without attention are omitted, so there may be no group. Values
// that neither the file nor a table has are described in `missing`.
std::vector<LayerGroup> layer_groups(ModelFields& fields, const RopeParameters& parameters,
                                     std::vector<std::string>& missing);

// Models whose layers do not rotate: the method of their positions, and their windows.

// instead: RopeConfig::instead. One group without numbers of layers.
RopeConfig without_rotation(const std::string& instead, ModelFields& fields,
                            const std::string& type);

// The groups of layers of a family that never rotates. They differ in their windows only.
std::vector<RopeConfig> unrotated_layers(const std::string& instead, ModelFields& fields,
                                         const std::string& type);

// Models without rotation, as far as the file itself shows it.

// The model's position method instead of rotation, by our name; empty if it may rotate.
std::string other_positions(const nlohmann::json& config);

// The parameters of that method in the file: " alibi_bias_max 8".
std::string parameters_of_others(const nlohmann::json& config);

}  // namespace sextant
