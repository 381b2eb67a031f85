// Which architecture of Hugging Face's transformers computes what a decoder computes.
//
//   rope      RMSNorm    SwiGLU          Llama; with a window Mistral; without positions SmolLM3
//             RMSNorm    GELU, relu^2    Arcee
//             LayerNorm  SwiGLU          StableLM; the only one of which a part of a head may turn
//             LayerNorm  GELU, relu^2    Starcoder2; with a window, too
//   alibi     LayerNorm  GELU            MPT, if the hidden layer is four widths and keys have all
//   heads learned   LayerNorm  GELU, relu^2    GPT-2, if keys have all heads
//
// All are pre-norm. LayerNorms of StableLM, Starcoder2 and GPT-2 and matrices of GPT-2 have biases
// there, which are 0. Any other decoder is written as Sextant's own, which transformers does not
// load.
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
// None if transformers has it and we do not, or nobody has.
std::optional<Family> family_of(const std::string& model_type);

// The decoder's norm has a bias in that architecture; matrices have.
bool has_norm_bias(Family family);

struct Choice {
  Family family = Family::kOwn;
  std::string obstacle;  // of kOwn: why it is none of the others
};
// Throws Error if the options are not the method's.
Choice choose_family(const ModelConfig& config);

}  // namespace sextant::hugging_face
