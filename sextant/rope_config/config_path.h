// The configuration file of a path, which is a file or a model's folder.
#pragma once

#include <string>

#include "sextant/base/export.h"

namespace sextant {

// In a folder, the file is its config.json; in a folder of Hugging Face's cache
// (models--org--name), the config.json of the snapshot in use; otherwise the only GGUF file in the
// folder (the first part of a split one). Throws an Error with the files found if there is none of
// these.
SEXTANT_API std::string config_path(const std::string& path);

}  // namespace sextant
