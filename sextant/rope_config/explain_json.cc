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
                     {"frequency", pair.speed},
                     {"stretched", pair.stretched},
                     {"turns_in_training", pair.turns},
                     {"kept", std::isnan(pair.kept) ? json() : json(pair.kept)},
                     {"new_from", or_null(pair.leaves)}});
  }
  return pairs;
}

json to_json(const RopeConfig& setting, const Explained& n) {
  const std::string law = query_law_of(setting);
  const bool rotates = setting.rotates;
  const json channels =
      rotates ? json({setting.first_channel, setting.first_channel + setting.rotary_dim - 1})
              : json();
  const json numbers = setting.layer_numbers.empty() ? json() : json(setting.layer_numbers);
  return {{"layers", setting.layers},
          {"layer_numbers", numbers},
          {"rotates", rotates},
          {"instead", rotates ? json() : json(setting.instead)},
          {"pairing", or_null(pairing_of(setting))},
          {"rotated_channels", channels},
          {"base", rotates ? json(setting.base) : json()},
          {"query_law", or_null(law)},
          {"rope_type", rotates ? json(setting.scaling.type) : json()},
          {"method", method_of(setting)},
          {"parameters", rotates ? parameters_of(setting) : json::object()},
          {"query_factor", or_null(law)},
          {"window", or_null(setting.window)},
          {"chunk", or_null(setting.chunk)},
          {"dual_chunk", or_null(setting.dual_chunk)},
          {"bounded_in", or_null(setting.bounded_in)},
          {"largest_distance", or_null(n.reach)},
          {"notes", setting.notes},
          {"rope_theta", rotates ? json(setting.base) : json()},
          {"head_dim", or_null(setting.head_dim)},
          {"rotary_dim", setting.rotary_dim},
          {"trained_length", or_null(n.trained)},
          {"target_length", or_null(n.target)},
          {"factor", n.factor},
          {"attention_factor", n.gain},
          {"score_factor", setting.scaling.score_factor},
          {"softmax_scale", n.turned_scale == 0 ? json() : json(n.turned_scale)},
          {"softmax_scale_of_unturned", n.scale == 0 ? json() : json(n.scale)},
          {"float32_error", n.float32_error},
          {"new_angles_from", or_null(n.first_leaving)},
          {"pairs", pairs_of(n)},
          {"warnings", setting.scaling.warnings},
          {"doubts", doubts_of(setting)}};
}

}  // namespace

std::string explain_json(const ReadRopeConfig& read, int64_t length) {
  json all = json::array();
  for (const RopeConfig& setting : read.settings)
    all.push_back(to_json(setting, explain(setting, length)));
  return json({{"schema", 2}, {"dialect", read.dialect}, {"settings", all}})
      .dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sextant
