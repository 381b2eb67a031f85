// The facts of one layer: whether and how it rotates, from the file's fields for all layers, for
// kinds of layers and for single layers, and from its family's code.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sextant/position/query_scale.h"
#include "sextant/position/spectrum.h"
#include "sextant/rope_config/model_fields.h"

namespace sextant {

// rope_scaling or rope_parameters of a file; the latter may have an object per kind of layer.
struct RopeParameters {
  nlohmann::json object;  // {"rope_type": "default"} if the file has none
  bool nested = false;
  std::string where;  // "config.json: rope_parameters"
};

struct LayerFacts {
  bool has_attention = true;
  std::string kind;        // from layer_types: "full_attention"; empty: there are no kinds
  std::string parameters;  // the key of its parameters in nested ones
  bool rotates = true;
  nlohmann::json object;  // its parameters, with a rope_type
  std::optional<double> base;
  std::optional<double> part;  // rotated part of the channels, unless rotary_dim gives it
  int64_t head_dim = 0;
  std::optional<int64_t> rotary_dim;
  bool latent = false;
  int64_t window = 0, chunk = 0;
  bool both_sides = false;   // the window also has as many keys after the query
  double softmax_scale = 0;  // 0: 1 / sqrt(head_dim)
  bool scales_scores = false;
  std::optional<Pairing> pairing;
  std::optional<int64_t> first_channel;  // none: 0
  QueryScale query_scale;
  std::string query_law;  // in words

  bool operator==(const LayerFacts&) const = default;
};

// `kind`: the kind of the layer if the caller knows it; empty: from the file or its family. Values
// that neither the file nor a table has are described in `missing` and replaced by possible values.
LayerFacts facts_of_layer(ModelFields& fields, const RopeParameters& parameters, int64_t layer,
                          const std::string& kind, std::vector<std::string>& missing);

}  // namespace sextant
