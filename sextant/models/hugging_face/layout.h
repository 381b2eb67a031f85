// The mapping between a decoder's parameters and the tensors of a family's model.safetensors.
//
//   ours                   Llama                                         form
//   embedding              model.embed_tokens.weight                     times sqrt(width) if tied
//   layers.N.attention.in  model.layers.N.self_attn.{q,k,v}_proj.weight  rows [q; k; v]
//   layers.N.mlp.up        ....mlp.gate_proj.weight, up_proj.weight      rows [gate; up]
//   unembedding            lm_head.weight                                the embedding if tied
//
// and so on. transformers' ropes pair channel f with f + R/2; if a rope pairs 2f with 2f + 1, the
// rows of q and k are permuted to that order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sextant/models/hugging_face/config.h"

namespace sextant::hugging_face {

struct TensorMapping {
  enum class Form {
    kRows,         // rows of the parameter from first_row on, unchanged
    kTransposed,   // the transposed parameter
    kScaled,       // the parameter times sqrt(width)
    kInterleaved,  // as kRows, each head's channels permuted from interleaved to half-split
    kZeros,        // no parameter: the tensor must be all zeros
  };
  std::string tensor;          // name in the file
  std::string parameter;       // name of our parameter
  std::vector<int64_t> shape;  // in the file
  int64_t first_row = 0;
  Form form = Form::kRows;
};

// All tensors of the file. one_matrix: see ReadConfig.
std::vector<TensorMapping> places(const ModelConfig& config, Family family,
                                  bool one_matrix = false);

// The pairing of the rope that is the method or is wrapped by it; "half-split" for other methods.
std::string pairing_of(const ModelConfig& config);

// For `head_dim` channels of which the first `turning` are rotated: the interleaved channel at each
// index of the half-split order.
std::vector<int64_t> half_split_order(int64_t head_dim, int64_t turning);

}  // namespace sextant::hugging_face
