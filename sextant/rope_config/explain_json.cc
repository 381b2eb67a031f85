#include "sextant/rope_config/explain_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/rope_config/doubts.h"
#include "sextant/rope_config/explain.h"

namespace sextant {
namespace {

using nlohmann::json;

json or_null(int64_t value) { return value == 0 ? json() : json(value); }
json or_null(const std::string& text) { return text.empty() ? json() : json(text); }

json pairs_of(const Explained& n) {
  json pairs = json::array();
  for (const PairExplained& pair : n.pairs) {
    pairs.push_back({{"axis", pair.axis},
                     {"frequency", pair.frequency},
                     {"stretched", pair.stretched},
                     {"rotations_in_training", pair.rotations},
                     {"kept", std::isnan(pair.kept) ? json() : json(pair.kept)},
                     {"new_from", or_null(pair.leaves)}});
  }
  return pairs;
}

json to_json(const RopeConfig& config, const Explained& n) {
  const bool rotates = config.rotates;
  const json channels =
      rotates ? json({config.first_channel, config.first_channel + config.rotary_dim - 1}) : json();
  const json numbers = config.layer_numbers.empty() ? json() : json(config.layer_numbers);
  return {{"layers", config.layers},
          {"layer_numbers", numbers},
          {"rotates", rotates},
          {"instead", rotates ? json() : json(config.instead)},
          {"pairing", or_null(pairing_of(config))},
          {"rotated_channels", channels},
          {"base", rotates ? json(config.base) : json()},
          {"query_law", or_null(query_law_of(config))},
          {"rope_type", rotates ? json(config.scaling.type) : json()},
          {"method", method_of(config)},
          {"parameters", rotates ? parameters_of(config) : json::object()},
          {"window", or_null(config.window)},
          {"both_sides", config.both_sides},
          {"chunk", or_null(config.chunk)},
          {"dual_chunk", or_null(config.dual_chunk)},
          {"bounded_in", or_null(config.bounded_in)},
          {"largest_distance", or_null(n.reach)},
          {"notes", config.notes},
          {"head_dim", or_null(config.head_dim)},
          {"rotary_dim", config.rotary_dim},
          {"trained_length", or_null(n.trained)},
          {"target_length", or_null(n.target)},
          {"factor", n.factor},
          {"attention_factor", n.gain},
          {"score_factor", config.scaling.score_factor},
          {"softmax_scale", n.rotated_scale == 0 ? json() : json(n.rotated_scale)},
          {"unrotated_softmax_scale", n.scale == 0 ? json() : json(n.scale)},
          {"float32_error", n.float32_error},
          {"new_angles_from", or_null(n.first_leaving)},
          {"pairs", pairs_of(n)},
          {"warnings", config.scaling.warnings},
          {"doubts", doubts_of(config)}};
}

// An entry with the keys of schema 2, which a later version no longer has.
json with_old_keys(json entry) {
  entry["rope_theta"] = entry["base"];
  entry["query_factor"] = entry["query_law"];
  entry["softmax_scale_of_unturned"] = entry["unrotated_softmax_scale"];
  for (json& pair : entry["pairs"]) pair["turns_in_training"] = pair["rotations_in_training"];
  return entry;
}

}  // namespace

std::string explain_json(const ReadRopeConfig& read) {
  json configs = json::array(), old = json::array();
  for (size_t g = 0; g < read.configs.size(); ++g) {
    configs.push_back(to_json(read.configs[g], read.explained[g]));
    old.push_back(with_old_keys(configs.back()));
  }
  json vision = json::array();
  for (const VisionPart& part : read.vision) vision.push_back(vision_json(part));
  return json({{"schema", 3},
               {"dialect", read.dialect},
               {"configs", configs},
               {"vision", vision},
               {"settings", old}})
      .dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sextant
