// Any of the dialects, told by what the bytes look like.
#pragma once

#include <string>
#include <vector>

#include "sextant/rope_config/rope_config.h"

namespace sextant {

struct ReadRopeConfig {
  std::string dialect;  // "Hugging Face config.json", "GGUF", "flags"
  std::string json;     // the configuration, if it was one: what a conversion keeps
  std::vector<RopeConfig> settings;
  // Where in a config.json the setting is: "text_config", "thinker_config.text_config"; "": the
  // whole.
  std::string place = {};
};

// path: a file, or "-" for standard input. Throws Error if it cannot be read, or names what is
// wrong in it.
ReadRopeConfig read_rope_config(const std::string& path, const Overrides& overrides);
ReadRopeConfig read_rope_config_bytes(const std::string& bytes, const Overrides& overrides);

}  // namespace sextant
