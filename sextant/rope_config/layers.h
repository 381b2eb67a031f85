// Groups of layers with the same facts.
#pragma once

#include <string>
#include <vector>

#include "sextant/rope_config/layer_facts.h"

namespace sextant {

struct LayerGroup {
  std::string name;  // the kind of its layers if the model has several kinds; else empty
  LayerFacts facts;
  std::vector<int64_t> layers;  // indices from 0; empty: all, or not known
};

// Returns groups of layers with the same facts: rotating groups first, and among them groups
// without a window first. Layers without attention are omitted, so there may be no group. Values
// that neither the file nor a table has are described in `missing`.
std::vector<LayerGroup> layer_groups(ModelFields& fields, const RopeParameters& parameters,
                                     std::vector<std::string>& missing);

}  // namespace sextant
