#include "tests/torch/subjects.h"

#include <map>

#include "tests/torch/model.h"

namespace sextant::testing {

ModelShape Subject::shape() const {
  ModelShape shape = kSmallShape;
  if (!shares_key_heads) shape.key_heads = shape.heads;
  return shape;
}

const Subject& subject(const std::string& method) {
  static const Subject usual;
  static const std::map<std::string, Subject> all = {
      {"binary", {.absolute = true}},
      {"clock", {.absolute = true}},
      {"complex", {.absolute = true}},
      {"floater", {.absolute = true, .shares_key_heads = false, .smooth = false}},
      {"hierarchical", {.absolute = true}},
      {"learned", {.options = R"({"rows": 64})", .absolute = true}},
      {"recursive", {.absolute = true}},
      {"relative-key", {.options = R"({"max_position_embeddings": 64})"}},
      {"rope", {.rounding = 1e-14}},  // turns by the angles of positions, not of distances
      {"shaw", {.options = R"({"clip": 3})"}},
      {"sinusoidal", {.absolute = true}},
      {"skew", {.options = R"({"unmasked": true})"}},
      {"window", {.options = R"({"window": 4})", .rounding = 1e-14}},  // over rope
  };
  const auto found = all.find(method);
  return found == all.end() ? usual : found->second;
}

}  // namespace sextant::testing
