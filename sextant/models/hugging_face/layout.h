// Where a decoder's parameters lie in a model.safetensors of a family.
//
//   ours                     a Llama's                                     how
//   embedding                model.embed_tokens.weight                     times sqrt(width) if
//   tied layers.N.attention.in    model.layers.N.self_attn.{q,k,v}_proj.weight  rows [q; k; v]
//   layers.N.mlp.up          ....mlp.gate_proj.weight, up_proj.weight      rows [gate; up]
//   unembedding              lm_head.weight                                the embedding if tied
//
// and so on. transformers' ropes pair channel f with f + R/2; rows of q and k of a rope that pairs
// 2f with 2f + 1 are put in that order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sextant/models/hugging_face/config.h"

namespace sextant::hugging_face {

struct TensorMapping {
  enum class Form {
    kRows,         // rows first_row .. of the parameter, as they are
    kTransposed,   // the parameter, its columns as rows
    kScaled,       // the parameter times sqrt(width)
    kInterleaved,  // as kRows, the channels of each head from interleaved to half-split pairs
    kZeros,        // no parameter: zeros, and nothing else may be there
  };
  std::string tensor;          // its name in the file
  std::string parameter;       // ours
  std::vector<int64_t> shape;  // in the file
  int64_t first_row = 0;
  Form form = Form::kRows;
};

// Every tensor of the file. one_matrix: see ReadConfig.
std::vector<TensorMapping> places(const ModelConfig& config, Family family,
                                  bool one_matrix = false);

// The pairing of the rope that the method is or stands over; "half-split" if it is none.
std::string pairing_of(const ModelConfig& config);

// Of `head_dim` channels of which the first `turning` turn: which interleaved one stands at each
// place of the half-split order.
std::vector<int64_t> half_split_order(int64_t head_dim, int64_t turning);

}  // namespace sextant::hugging_face
