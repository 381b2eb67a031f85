// The configuration of a model: everything but its weights.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/models/decoder/decoder_options.h"

namespace sextant {

struct ModelConfig {
  DecoderOptions model;
  std::string method;          // name in the registry
  std::string options = "{}";  // JSON object
  int64_t memory = 0;          // positions kept from earlier segments; 0: none
  int64_t train_length = 0;    // L: positions seen in training
};

// from_json() is strict: it expects every field and no other.
void to_json(nlohmann::json& json, const ModelConfig& config);
void from_json(const nlohmann::json& json, ModelConfig& config);

}  // namespace sextant
