// What a family calls the sizes of a decoder in its config.json.
#pragma once

#include <string>

#include "sextant/models/hugging_face/family.h"

namespace sextant::hugging_face {

// nullptr: the family has no choice there.
struct Keys {
  const char *width, *layers, *heads, *key_heads, *mlp_width, *length, *epsilon, *activation;
};
Keys keys_of(Family family);

// It may be said apart from the width and the heads.
inline bool has_head_dim(Family family) {
  return family == Family::kLlama || family == Family::kMistral || family == Family::kArcee;
}

// "gelu" (the exact one), "relu2"; SwiGLU's is "silu".
const char* word_of(Activation activation);

}  // namespace sextant::hugging_face
