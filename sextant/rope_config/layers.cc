#include "sextant/rope_config/layers.h"

#include <algorithm>
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

}  // namespace sextant
