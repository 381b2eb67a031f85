// Groups of layers that are alike.
#pragma once

#include <string>
#include <vector>

#include "sextant/rope_config/layer_facts.h"

namespace sextant {

struct LayerGroup {
  std::string name;  // the kind of its layers, if the model has several; else empty
  LayerFacts facts;
  std::vector<int64_t> layers;  // from 0; empty: all, or not known
};

// Groups of layers that are alike: those that rotate first, and among them those without a window.
// Layers without attention are left out, so that there may be no group. Values that neither the
// file nor a table has are added to `missing`, in words.
std::vector<LayerGroup> layer_groups(ModelFields& fields, const RopeParameters& parameters,
                                     std::vector<std::string>& missing);

}  // namespace sextant
