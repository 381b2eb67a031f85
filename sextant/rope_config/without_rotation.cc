#include "sextant/rope_config/without_rotation.h"

#include "sextant/rope_config/layers.h"
#include "sextant/rope_config/other_positions.h"

namespace sextant {

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

}  // namespace sextant
