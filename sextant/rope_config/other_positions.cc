#include "sextant/rope_config/other_positions.h"

#include <nlohmann/json.hpp>

namespace sextant {
namespace {

using nlohmann::json;

bool is_yes(const json& object, const char* name) {
  return object.is_object() && object.value(name, json()) == json(true);
}

}  // namespace

std::string other_positions(const json& config) {
  const json attention = config.value("attn_config", json());
  if (is_yes(attention, "rope")) return "";
  if (is_yes(config, "alibi") || is_yes(attention, "alibi")) return "alibi";
  const json kind = config.value("position_embedding_type", json());
  if (kind == json("alibi")) return "alibi";
  if (kind == json("relative_key") || kind == json("relative_key_query")) return "relative-key";
  if (kind == json("nope") || is_yes(config, "mla_use_nope")) return "none";
  return "";
}

std::string parameters_of_others(const json& config) {
  std::string said;
  const auto add = [&](const json& object) {
    for (const char* name :
         {"alibi_bias_max", "relative_attention_num_buckets", "relative_attention_max_distance",
          "max_relative_position", "max_relative_positions", "position_buckets", "pos_att_type",
          "clamp_len", "bi_data", "n_positions", "max_position_embeddings"}) {
      if (!object.contains(name) || object.at(name).is_object()) continue;
      const std::string value = object.at(name).dump(-1, ' ', true, json::error_handler_t::replace);
      said += said.empty() ? " " : ", ";
      said += name;
      said += " ";
      said += value.substr(0, 60);
    }
  };
  add(config);
  if (config.contains("attn_config") && config.at("attn_config").is_object()) {
    add(config.at("attn_config"));
  }
  return said;
}

}  // namespace sextant
