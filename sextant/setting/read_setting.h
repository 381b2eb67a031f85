// Any of the dialects, told by what the bytes look like.
#pragma once

#include <string>
#include <vector>

#include "sextant/setting/setting.h"

namespace sextant {

struct ReadSetting {
  std::string dialect;  // "Hugging Face config.json", "GGUF", "flags"
  std::string json;     // the configuration, if it was one: what a conversion keeps
  std::vector<RotarySetting> settings;
};

// path: a file, or "-" for standard input. Throws Error if it cannot be read, or names what is wrong in it.
ReadSetting read_setting(const std::string& path, const Overrides& overrides);
ReadSetting read_setting_bytes(const std::string& bytes, const Overrides& overrides);

}  // namespace sextant
