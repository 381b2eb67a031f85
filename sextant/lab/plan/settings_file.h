// Reader of a settings file written by the user, in TOML (NAME.toml) or JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant::lab {

// Throws Error that names the file. For TOML it also names the line and the column, and the key of
// a value that JSON cannot represent: a date, a time, an infinity.
nlohmann::json read_settings_file(const std::filesystem::path& path);

// The same for the text of a TOML file.
nlohmann::json parse_toml(const std::string& text, const std::filesystem::path& path);

}  // namespace sextant::lab
