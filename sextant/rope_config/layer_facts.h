// Of one layer: whether and how it rotates, by what the file says of all layers, of kinds of layers
// and of single ones, and by its family's code.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sextant/position/query_scale.h"
#include "sextant/position/spectrum.h"
#include "sextant/rope_config/model_fields.h"

namespace sextant {

// rope_scaling or rope_parameters of a file, the latter perhaps with an object for each kind.
struct RopeParameters {
  nlohmann::json object;  // {"rope_type": "default"} where the file has none
  bool nested = false;
  std::string where;  // "config.json: rope_parameters"
};

struct LayerFacts {
  bool has_attention = true;
  std::string kind;        // of layer_types: "full_attention"; empty: there are no kinds
  std::string parameters;  // the key of its parameters among nested ones
  bool rotates = true;
  nlohmann::json object;  // its parameters, with a rope_type
  std::optional<double> base;
  std::optional<double> part;  // of its channels, where rotary_dim is not said otherwise
  int64_t head_dim = 0;
  std::optional<int64_t> rotary_dim;
  bool latent = false;
  int64_t window = 0, chunk = 0;
  double softmax_scale = 0;  // 0: 1 / sqrt(head_dim)
  bool scales_scores = false;
  std::optional<Pairing> pairing;
  std::optional<int64_t> first_channel;  // none: 0
  QueryScale query_scale;
  std::string query_law;  // in words

  bool operator==(const LayerFacts&) const = default;
};

// `kind`: of the layer, where the caller knows it; empty: by the file or its family. Values that
// neither the file nor a table has are added to `missing`, in words, and replaced by something
// possible.
LayerFacts facts_of_layer(ModelFields& fields, const RopeParameters& parameters, int64_t layer,
                          const std::string& kind, std::vector<std::string>& missing);

}  // namespace sextant
