// config.json of a decoder in the fields of Hugging Face's transformers: writing and reading.
//
// Values without a field in a family are written to an object "sextant", which transformers keeps
// and ignores: {"train_length": L, "tied": whether embedding and unembedding are one matrix, with
// the factor sqrt(width) on the embedding, "pairing": the pairing of the trained rope, whose
// channels have another order in the file}. A config.json from elsewhere has no such object, and L
// is the length that it gives.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/models/decoder/decoder_options.h"
#include "sextant/models/hugging_face/family.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant::hugging_face {

struct ReadConfig {
  ModelConfig config = {};
  Family family = Family::kOwn;
  bool one_matrix = false;  // one matrix is both embedding and unembedding, without a factor
};

// family: choose_family(config).family.
nlohmann::json write_config(const ModelConfig& config, Family family);

// Throws an Error that names the field and the expectation: for a model_type of no known family, a
// feature that this decoder computes differently, or a missing value.
ReadConfig read_config(const nlohmann::json& json);

// The reason why config.json cannot express these complete options of rope; "" if it can.
// `partial`: the architecture can rotate a part of each head.
std::string rotary_obstacle(const ModelConfig& config, const nlohmann::json& options, bool partial);

// The rope options of a RopeConfig. A dynamic stretch depends on the sequence length, as in Hugging
// Face.
nlohmann::json rotary_options(const RopeConfig& rope);

}  // namespace sextant::hugging_face
