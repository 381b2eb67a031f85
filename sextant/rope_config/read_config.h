// Reads any of the formats, which is recognised from the bytes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/rope_config.h"
#include "sextant/rope_config/vision.h"

namespace sextant {

struct ReadRopeConfig {
  std::string dialect;  // "Hugging Face config.json", "GGUF", "flags"
  std::string json;     // the configuration, if it was JSON; conversions keep its other fields
  std::vector<RopeConfig> configs;
  // The path of the configuration in a config.json: "text_config", "thinker_config.text_config";
  // "": the whole file.
  std::string place = {};
  std::vector<Explained> explained = {};  // of each of these, at Overrides::length
  std::vector<VisionPart> vision = {};    // of a config.json
};

// Reads YAML as read_yaml() of sextant/files/yaml.h, which has a library of its own.
using YamlParser = nlohmann::json (*)(const std::string& text, const std::string& where);

// path: a file, or "-" for standard input. Without a parser files of YAML (docker compose) are
// refused. Throws Error if it cannot be read or is invalid.
SEXTANT_API ReadRopeConfig read_rope_config(const std::string& path, const Overrides& overrides,
                                            YamlParser yaml = nullptr);
SEXTANT_API ReadRopeConfig read_rope_config_bytes(const std::string& bytes,
                                                  const Overrides& overrides,
                                                  YamlParser yaml = nullptr);

}  // namespace sextant
