// The values of a file for all layers: its rope_scaling or rope_parameters, and lengths.
#pragma once

#include <string>
#include <vector>

#include "sextant/rope_config/layer_facts.h"

namespace sextant {

struct Lengths {
  int64_t most = 0;           // max_position_embeddings; 0: missing
  int64_t original = 0;       // original_max_position_embeddings beside the scaling; 0: missing
  std::string original_from;  // in words
};

// rope_parameters (version 5 of transformers), rope_scaling (version 4), or the fields of some
// older models. Two that contradict each other cause a warning, or an Error if parameters are given
// by kind of layer.
RopeParameters rope_parameters(ModelFields& fields);

Lengths lengths_of(ModelFields& fields);

// Reads positions within chunks (dual_chunk_attention_config).
void read_dual_chunks(ModelFields& fields, std::vector<RopeConfig>& ropes);

}  // namespace sextant
