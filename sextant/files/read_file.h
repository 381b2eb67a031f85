// A whole file's bytes.
#pragma once

#include <filesystem>
#include <string>

namespace sextant {

// Throws Error that says which file cannot be read, and why.
std::string read_file(const std::filesystem::path& path);

}  // namespace sextant
