#include "sextant/sextant_config.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sextant/c/guard.h"
#include "sextant/c/handles.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/read_config.h"

using namespace sextant;
using sextant::c::guarded;
using sextant::c::need;

namespace {

// The configuration of a layer, from groups of layers that may all list their layers.
const RopeConfig& config_of_layer(const std::vector<RopeConfig>& groups, int64_t layer) {
  for (const RopeConfig& group : groups)
    if (std::ranges::find(group.layer_numbers, layer) != group.layer_numbers.end()) return group;
  const bool numbered = std::ranges::any_of(
      groups, [](const RopeConfig& group) { return !group.layer_numbers.empty(); });
  if (groups.size() == 1 && !numbered && layer >= 0) return groups.front();
  fail("config: layer: expected one that the configuration describes, but got " +
       std::to_string(layer));
}

}  // namespace

sextant_status sextant_rope_create_from_config(const char* config, size_t bytes, int64_t layer,
                                               int64_t length, sextant_rope** rope, double* scale) {
  return guarded([&] {
    if (length < 1 || length > kLongestSequence)
      fail("config: length: expected 1 to 2^40 tokens, but got " + std::to_string(length));
    const ReadRopeConfig read =
        read_rope_config_bytes(std::string(&need(config, "config"), bytes), {});
    const RopeConfig& setting = config_of_layer(read.settings, layer);
    if (!setting.rotates)
      fail("config: layer: expected a layer that rotates, but layer " + std::to_string(layer) +
           " does not");
    const double factor = scale ? explain(setting, length).scale : 0;
    c::give(rope, "rope", rotation(spectrum_of(setting, length)));
    if (scale) *scale = factor;
  });
}
