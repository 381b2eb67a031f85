// A file of settings that a person wrote, in TOML (NAME.toml) or JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace sextant::lab {

// Throws Error that names the file; in TOML also the line and the column of what is wrong, and the
// key of a value that JSON has no word for: a date, a time, an infinity.
nlohmann::json read_settings_file(const std::filesystem::path& path);

}  // namespace sextant::lab
