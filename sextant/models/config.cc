#include "sextant/models/config.h"

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"

namespace sextant {

void to_json(nlohmann::json& json, const ModelConfig& config) {
  json = {{"model", config.model},
          {"method", config.method},
          {"options", nlohmann::json::parse(config.options)},
          {"memory", config.memory},
          {"train_length", config.train_length}};
}

void from_json(const nlohmann::json& json, ModelConfig& config) {
  JsonFields fields(json, "config.json: sextant");
  config.model = fields.at("model").get<DecoderOptions>();
  fields.read("method", config.method);
  const nlohmann::json& options = fields.at("options");
  if (!options.is_object()) {
    fail("config.json: sextant: options: expected an object, but got " + options.dump());
  }
  config.options = options.dump();
  fields.read("memory", config.memory);
  fields.read("train_length", config.train_length);
  if (config.memory < 0 || config.train_length < 1) {
    fail("config.json: sextant: memory, train_length: expected at least 0 and 1, but got " +
         std::to_string(config.memory) + " and " + std::to_string(config.train_length));
  }
  fields.finish();
}

}  // namespace sextant
