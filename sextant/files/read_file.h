// Reads a whole file.
#pragma once

#include <filesystem>
#include <string>

namespace sextant {

// Returns the file's bytes. Throws Error with the path and the reason if it cannot be read.
std::string read_file(const std::filesystem::path& path);

}  // namespace sextant
