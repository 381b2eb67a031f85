// The values of a file that are for all layers: its rope_scaling or rope_parameters, and lengths.
#pragma once

#include <vector>

#include "sextant/rope_config/layer_facts.h"

namespace sextant {

struct Lengths {
  int64_t most = 0;      // max_position_embeddings; 0: not said
  int64_t original = 0;  // original_max_position_embeddings beside the scaling; 0: not there
};

// rope_parameters (version 5 of transformers), rope_scaling (4), or what some models say with words
// of their own. Two that contradict each other are an Error that names the key.
RopeParameters rope_parameters(ModelFields& fields);

Lengths lengths_of(ModelFields& fields);

// Positions that are taken within chunks (dual_chunk_attention_config).
void read_dual_chunks(ModelFields& fields, std::vector<RopeConfig>& ropes);

}  // namespace sextant
