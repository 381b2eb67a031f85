// The field names of a decoder's sizes in config.json, by family.
#pragma once

#include <string>

#include "sextant/models/hugging_face/family.h"

namespace sextant::hugging_face {

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
