// config.json: a decoder in the words of Hugging Face's transformers, there and back.
//
// What a family has no word for stands in an object "sextant", which transformers keeps and does
// not read: {"train_length": L, "tied": whether the two matrices of tokens are one, times
// sqrt(width), "pairing": of the rope that was trained, whose channels stand in another order in
// the file}. A config.json that nobody here wrote has none, and what it says of lengths is taken
// for L.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sextant/models/hugging_face/family.h"

namespace sextant::hugging_face {

struct ReadConfig {
  ModelConfig config;
  Family family = Family::kOwn;
  bool one_matrix = false;  // the file has one matrix for reading and writing tokens, unscaled
};

// Of choose_family(config).family.
nlohmann::json write_config(const ModelConfig& config, Family family);

// Throws Error that names the field and what was expected: a model_type that is none of the
// families, something that their decoders do here otherwise, or a value that is missing.
ReadConfig read_config(const nlohmann::json& json);

}  // namespace sextant::hugging_face
