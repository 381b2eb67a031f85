#include "sextant/models/config.h"

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/json_record.h"

namespace sextant {

template <class Io>
void fields_of(const Io& io, RecordOf<Io, ModelConfig>& config) {
  io.object("model", config.model)("method", config.method)("memory", config.memory);
  io("train_length", config.train_length);
  if constexpr (Io::kWrites) {
    io.at["options"] = nlohmann::json::parse(config.options);
  } else {
    config.options = io.at.object("options").dump();
  }
}

void to_json(nlohmann::json& json, const ModelConfig& config) { write_record(json, config); }

void from_json(const nlohmann::json& json, ModelConfig& config) {
  read_record(json, "config.json: sextant", config);
  if (config.memory < 0 || config.train_length < 1)
    fail("config.json: sextant: memory, train_length: expected at least 0 and 1, but got " +
         std::to_string(config.memory) + " and " + std::to_string(config.train_length));
}

}  // namespace sextant
