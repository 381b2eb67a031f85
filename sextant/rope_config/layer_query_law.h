// The law by which a layer scales its queries, from its family's code or the file's fields.
#pragma once

#include "sextant/rope_config/layer_facts.h"
#include "sextant/rope_config/layer_values.h"

namespace sextant {

// Sets facts.query_scale or facts.query_law if the layer has a law; facts.rotates is already set.
void read_query_law(ModelFields& fields, const LayerValues& values, LayerFacts& facts);

}  // namespace sextant
