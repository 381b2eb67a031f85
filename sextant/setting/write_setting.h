// A setting in any of the dialects.
#pragma once

#include <string>

#include "sextant/setting/read_setting.h"

namespace sextant {

// to: "hf5", "hf4", "gguf", "llama.cpp" or "vllm". Text ends with a line break; gguf is a file of metadata
// without weights. Throws Error where the dialect cannot say the setting.
std::string write_setting(const ReadSetting& read, const std::string& to);

}  // namespace sextant
