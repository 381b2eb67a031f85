// The architecture of Hugging Face's transformers that computes the same function as a decoder.
//
//   rope      RMSNorm    SwiGLU          Llama; with a window Mistral; without positions SmolLM3
//             RMSNorm    GELU, relu^2    Arcee
//             LayerNorm  SwiGLU          StableLM; the only one that can rotate a part of a head
//             LayerNorm  GELU, relu^2    Starcoder2; also with a window
//   alibi     LayerNorm  GELU            MPT, if the hidden layer is 4 widths and key_heads = heads
//   learned   LayerNorm  GELU, relu^2    GPT-2, if key_heads = heads
//
// All are pre-norm. LayerNorms of StableLM, Starcoder2 and GPT-2 and matrices of GPT-2 have biases
// there; they are written as 0. Any other decoder is written in Sextant's own format, which
// transformers does not load.
#pragma once

#include <optional>
#include <string>

#include "sextant/models/config.h"

namespace sextant::hugging_face {

enum class Family { kLlama, kMistral, kSmolLm3, kArcee, kStableLm, kStarcoder2, kMpt, kGpt2, kOwn };

struct FamilyName {
  Family family;
  const char* model_type;    // "llama"
  const char* architecture;  // "LlamaForCausalLM"
};
const FamilyName& name_of(Family family);
// Empty for a model_type without a family here.
std::optional<Family> family_of(const std::string& model_type);

// Whether the norms of that architecture have a bias.
bool has_norm_bias(Family family);

struct Choice {
  Family family = Family::kOwn;
  std::string obstacle;  // for kOwn: the reason why no other family fits
};
// Throws Error if the options are not those of the method.
Choice choose_family(const ModelConfig& config);

// The field names of a decoder's sizes in config.json, by family.

// nullptr: the family has no such field.
struct Keys {
  const char *width, *layers, *heads, *key_heads, *mlp_width, *length, *epsilon, *activation;
};
Keys keys_of(Family family);

// Whether head_dim is a field of its own and need not be width / heads.
inline bool has_head_dim(Family family) {
  return family == Family::kLlama || family == Family::kMistral || family == Family::kArcee;
}

// "gelu" (the exact function), "relu2"; "silu" for SwiGLU.
const char* word_of(Activation activation);

}  // namespace sextant::hugging_face
