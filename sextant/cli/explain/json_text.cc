// sextant explain --json: what is explained, for machines.
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/cli/explain/subject.h"

namespace sextant::cli {
namespace {

using nlohmann::json;

json to_json(const Subject& subject) {
  const auto& [setting, n] = subject;
  const std::string law = law_of(setting.scaling.query_scale);
  json pairs = json::array();
  for (const PairExplained& pair : n.pairs) {
    pairs.push_back({{"axis", pair.axis},
                     {"frequency", pair.speed},
                     {"stretched", pair.stretched},
                     {"turns_in_training", pair.turns},
                     {"kept", std::isnan(pair.kept) ? json() : json(pair.kept)},
                     {"new_from", pair.leaves == 0 ? json() : json(pair.leaves)}});
  }
  return {{"layers", setting.layers},
          {"rope_type", setting.scaling.type},
          {"method", name_of(setting.scaling).name},
          {"parameters", parameters_of(setting)},
          {"query_factor", law.empty() ? json() : json(law)},
          {"window", setting.window == 0 ? json() : json(setting.window)},
          {"chunk", setting.chunk == 0 ? json() : json(setting.chunk)},
          {"dual_chunk", setting.dual_chunk == 0 ? json() : json(setting.dual_chunk)},
          {"bounded_in", setting.bounded_in.empty() ? json() : json(setting.bounded_in)},
          {"largest_distance", n.reach == 0 ? json() : json(n.reach)},
          {"notes", setting.notes},
          {"rope_theta", setting.base},
          {"head_dim", setting.head_dim},
          {"rotary_dim", setting.rotary_dim},
          {"trained_length", n.trained == 0 ? json() : json(n.trained)},
          {"target_length", n.target == 0 ? json() : json(n.target)},
          {"factor", n.factor},
          {"attention_factor", n.gain},
          {"score_factor", setting.scaling.score_factor},
          {"softmax_scale", n.turned_scale},
          {"softmax_scale_of_unturned", n.scale},
          {"float32_error", n.float32_error},
          {"new_angles_from", n.first_leaving == 0 ? json() : json(n.first_leaving)},
          {"pairs", pairs},
          {"warnings", setting.scaling.warnings}};
}

}  // namespace

std::string json_text(const std::vector<Subject>& subjects, const std::string& dialect) {
  json all = json::array();
  for (const Subject& subject : subjects) all.push_back(to_json(subject));
  return json({{"dialect", dialect}, {"settings", all}}).dump(1);
}

}  // namespace sextant::cli
