#include "tests/torch/subjects.h"

#include <map>

#include "tests/torch/model.h"

namespace sextant::testing {

ModelShape Subject::shape() const {
  ModelShape shape = kSmallShape;
  if (!shares_key_heads) shape.key_heads = shape.heads;
  shape.width = shape.heads * head_dim;
  shape.head_dim = head_dim;
  return shape;
}

const Subject& subject(const std::string& method) {
  static const Subject usual;
  static const std::map<std::string, Subject> all = {
      {"binary", {.absolute = true}},
      {"chunk", {.absolute = true}},  // chunks begin at fixed positions
      {"clock", {.absolute = true}},
      {"complex", {.absolute = true}},
      {"dual-chunk", {.absolute = true}},  // chunks begin at fixed positions
      {"emd", {.options = R"({"rows": 64})", .absolute = true}},
      // The random multiplier makes the learned threshold L 2.5. fire_test compares gradients with
      // those of the formula.
      {"fire", {.options = R"({"threshold": 25})", .absolute = true, .smooth = false}},
      {"floater",
       {.absolute = true, .shares_key_heads = false, .smooth = false, .integrates = true}},
      {"hierarchical", {.absolute = true}},
      // The official code's clamps pass gradients straight through; the smooth clamps have
      // derivatives.
      {"kerple-log", {.options = R"({"clamp": "smooth"})"}},
      {"kerple-power", {.options = R"({"clamp": "smooth"})"}},
      {"leaky-rerope", {.rounding = 1e-14}},
      {"learned", {.options = R"({"rows": 64})", .absolute = true}},
      {"recursive", {.absolute = true}},
      {"relative-key", {.options = R"({"max_position_embeddings": 64})"}},
      {"rerope", {.rounding = 1e-14}},
      {"rope", {.rounding = 1e-14}},  // angles are of positions, not of distances
      // Trained speeds: angles are products of doubles, and the largest shift is 2^31.
      {"rope-mixed", {.rounding = 1e-6, .shares_key_heads = false, .head_dim = 8}},
      {"self-extend", {.absolute = true}},  // groups begin at fixed positions
      {"shaw", {.options = R"({"clip": 3})"}},
      {"sink", {.rounding = 1e-14}},  // over rope
      {"sinusoidal", {.absolute = true}},
      {"skew", {.options = R"({"unmasked": true})"}},
      {"streaming", {.rounding = 1e-14}},
      {"tupe",
       {.options = R"({"max_positions": 64})", .absolute = true, .shares_key_heads = false}},
      {"window", {.options = R"({"window": 4})", .rounding = 1e-14}},  // over rope
      {"xpos", {.rounding = 1e-14}},
  };
  const auto found = all.find(method);
  return found == all.end() ? usual : found->second;
}

}  // namespace sextant::testing
