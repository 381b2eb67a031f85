// Reader of a settings file written by the user, in TOML (NAME.toml) or JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/lab/plan/arms.h"

namespace sextant::lab {

// Throws Error that names the file. For TOML it also names the line and the column, and the key of
// a value that JSON cannot represent: a date, a time, an infinity.
nlohmann::json read_settings_file(const std::filesystem::path& path);

// The same for the text of a TOML file.
nlohmann::json parse_toml(const std::string& text, const std::filesystem::path& path);

// Reads the arms and settings of a survey from a file.

// A file of requests, in TOML if its name ends with .toml, else in JSON:
//   {"arms": ["alibi", {"label": "far", "method": "rope", "options": {"base": 1e6}}],
//    "settings": {"training": {"bytes": 400000}}}
// Its settings override those of the command line.
struct ArmsFile {
  std::vector<ArmRequest> arms;
  std::string settings = "{}";  // JSON object
};
// Throws Error that names the file and the field.
ArmsFile read_arms_file(const std::filesystem::path& path);
// The same for the content of a file.
ArmsFile arms_file_of(const nlohmann::json& content, const std::string& where);

// Returns the settings with some overridden by a JSON object: {"test": {"blocks": 16}}. Throws
// Error, whose text begins with `where`, for an unknown setting.
Settings laid_over(const Settings& settings, const std::string& json, const std::string& where);

}  // namespace sextant::lab
