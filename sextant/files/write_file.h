// Files that are there whole or not at all, whatever dies in between.
#pragma once

#include <filesystem>
#include <string_view>

namespace sextant {

// Writes a temporary file beside `path`, flushes it to the disk and renames it over `path`; makes
// the folders above. Throws Error, and leaves what was there before.
void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace sextant
