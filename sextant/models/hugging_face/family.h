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

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sextant/models/decoder/decoder_options.h"

namespace sextant::hugging_face {

enum class Family { kLlama, kMistral, kSmolLm3, kArcee, kStableLm, kStarcoder2, kMpt, kGpt2, kOwn };

// A row of families.json, where a field that is missing is false, empty, or the common name.
struct FamilyFacts {
  std::string model_type;    // "llama"
  std::string architecture;  // "LlamaForCausalLM"
  bool rms_norm, gated;      // else LayerNorm, and GELU or relu^2
  bool norm_bias;            // the norms have one there
  bool head_dim;             // is a field of its own and need not be width / heads
  bool ties;                 // embedding and unembedding, unless config.json says otherwise
  // Fields of config.json that are off here: those that a reader checks, with what transformers
  // takes for a missing one where that is another value, and those that are written only.
  nlohmann::json checked, if_missing, written;
  // The field names of a decoder's sizes, "" where the family has none; and the names of the parts
  // of its decoder: those of a layer begin behind `layer`, with q, k and v joined in `attention`,
  // and `gate` is "" if there is none.
  nlohmann::json keys, modules;

  std::string key(const char* size) const { return keys.at(size); }
};
const FamilyFacts& facts_of(Family family);
// Empty for a model_type without a family here.
std::optional<Family> family_of(const std::string& model_type);

struct Choice {
  Family family = Family::kOwn;
  std::string obstacle;  // for kOwn: the reason why no other family fits
};
// Throws Error if the options are not those of the method.
Choice choose_family(const ModelConfig& config);

}  // namespace sextant::hugging_face
