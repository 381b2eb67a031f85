// Files that hold one JSON value.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sextant/files/read_file.h"

namespace sextant {

// Throws Error that names the file if it is missing, malformed or too large.
nlohmann::json read_json(const std::filesystem::path& path);
template <class T>
T read_json_as(const std::filesystem::path& path) {
  return naming_file(path, [&] { return read_json(path).get<T>(); });
}
void write_json(const std::filesystem::path& path, const nlohmann::json& json);

}  // namespace sextant
