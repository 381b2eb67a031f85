// The facts of each layer are read alone; layers with equal facts become one group, which is named
// by the kinds of its layers.
#include "sextant/rope_config/layers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace sextant {
namespace {

using nlohmann::json;

// Kinds of layers that have parameters although no field gives the layers of each kind.
std::vector<std::string> kinds_without_layers(ModelFields& fields,
                                              const RopeParameters& parameters) {
  const Family* family = fields.family();
  const json types = fields.value("layer_types");
  if (types.is_array() && !types.empty()) return {};
  if (family != nullptr && !family->layer_types.empty()) return {};
  std::vector<std::string> kinds;
  if (parameters.nested) {
    for (const auto& item : parameters.object.items()) {
      if (item.value().is_object() || item.value().is_null()) kinds.push_back(item.key());
    }
  } else if (fields.says("rope_local_base_freq")) {
    kinds = {"full_attention", "sliding_attention"};
  }
  return kinds;
}

void add(std::vector<LayerGroup>& groups, LayerFacts facts, std::vector<int64_t> layers) {
  if (!facts.has_attention) return;
  const auto same =
      std::ranges::find_if(groups, [&](const LayerGroup& group) { return group.facts == facts; });
  if (same == groups.end()) {
    groups.push_back({facts.kind, std::move(facts), std::move(layers)});
  } else {
    same->layers.insert(same->layers.end(), layers.begin(), layers.end());
  }
}

// Joins kinds that differ only in their names.
void join_alike(std::vector<LayerGroup>& groups) {
  const auto nameless = [](LayerFacts facts) {
    facts.kind.clear();
    facts.parameters.clear();
    return facts;
  };
  const bool alike = std::ranges::all_of(groups, [&](const LayerGroup& group) {
    return nameless(group.facts) == nameless(groups[0].facts);
  });
  if (!alike || groups.size() < 2) return;
  for (size_t g = 1; g < groups.size(); ++g) {
    groups[0].layers.insert(groups[0].layers.end(), groups[g].layers.begin(),
                            groups[g].layers.end());
  }
  groups.resize(1);
  std::ranges::sort(groups[0].layers);
}

void name_groups(std::vector<LayerGroup>& groups) {
  std::set<std::string> kinds;
  for (const LayerGroup& group : groups) kinds.insert(group.name);
  for (LayerGroup& group : groups) {
    if (kinds.size() == 1) group.name.clear();
  }
}

bool is_yes(const json& object, const char* name) {
  return object.is_object() && object.value(name, json()) == json(true);
}

}  // namespace

std::vector<LayerGroup> layer_groups(ModelFields& fields, const RopeParameters& parameters,
                                     std::vector<std::string>& missing) {
  std::vector<LayerGroup> groups;
  const std::vector<std::string> kinds = kinds_without_layers(fields, parameters);
  for (const std::string& kind : kinds) {
    add(groups, facts_of_layer(fields, parameters, 0, kind, missing), {});
  }
  const int64_t known = fields.layers(), all = known > 0 ? known : fields.supposed_layers();
  for (int64_t layer = 0; kinds.empty() && layer < all; ++layer) {
    add(groups, facts_of_layer(fields, parameters, layer, "", missing),
        known > 0 ? std::vector{layer} : std::vector<int64_t>());
  }
  if (groups.empty()) return groups;
  if (!parameters.nested) join_alike(groups);
  std::ranges::stable_sort(groups, [](const LayerGroup& a, const LayerGroup& b) {
    const auto rank = [](const LayerGroup& group) {
      return std::pair(!group.facts.rotates, group.facts.window > 0);
    };
    return rank(a) < rank(b);
  });
  if (!parameters.nested || groups.size() == 1) name_groups(groups);
  return groups;
}

RopeConfig without_rotation(const std::string& instead, ModelFields& fields,
                            const std::string& type) {
  RopeConfig rope{
      .model_type = type,
      .max_length = fields.integer("max_position_embeddings", 1, kLongestSequence).value_or(0),
      .rotates = false,
      .instead = instead};
  const std::string said = parameters_of_others(fields.config());
  if (!said.empty()) rope.notes.push_back("the file has of it:" + said);
  for (const auto& [option, value] :
       {std::pair{"--base", fields.overrides().base},
        {"--local-base", fields.overrides().local_base},
        {"--head-dim", static_cast<double>(fields.overrides().head_dim)}}) {
    if (value > 0) {
      rope.scaling.warnings.push_back(std::string(option) +
                                      " has no effect: this model does not rotate");
    }
  }
  return rope;
}

std::vector<RopeConfig> unrotated_layers(const std::string& instead, ModelFields& fields,
                                         const std::string& type) {
  RopeConfig first = without_rotation(instead, fields, type);
  if (fields.family() == nullptr || fields.family()->rotates.empty()) return {first};
  std::vector<std::string> sizes_of_heads;  // are not needed
  const RopeParameters none{.object = {{"rope_type", "default"}}, .where = fields.where()};
  std::vector<RopeConfig> layers;
  for (const LayerGroup& group : layer_groups(fields, none, sizes_of_heads)) {
    RopeConfig& layer = layers.emplace_back(first);
    layer.layers = group.name;
    layer.layer_numbers = group.layers;
    layer.window = group.facts.window;
    layer.chunk = group.facts.chunk;
    layer.both_sides = group.facts.both_sides;
    first.notes.clear();
    first.scaling.warnings.clear();
  }
  return layers;
}

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
