// The file that a path means: a file itself, or a model's folder.
#pragma once

#include <string>

namespace sextant {

// A folder means the config.json in it; that of the snapshot in use, in a folder of Hugging Face's
// cache (models--org--name); or the one GGUF file in it (the first part of a split one). Throws
// Error that says what was found if it is none of these.
std::string config_path(const std::string& path);

}  // namespace sextant
