// Reader of a settings file written by the user, in TOML (NAME.toml) or JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace sextant::lab {

// Throws Error that names the file. For TOML it also names the line and the column, and the key of
// a value that JSON cannot represent: a date, a time, an infinity.
nlohmann::json read_settings_file(const std::filesystem::path& path);

}  // namespace sextant::lab
