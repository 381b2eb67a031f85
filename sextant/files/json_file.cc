#include "sextant/files/json_file.h"

#include "sextant/files/checked_json.h"
#include "sextant/files/write_file.h"

namespace sextant {

nlohmann::json read_json(const std::filesystem::path& path) {
  return naming_file(path,
                     [&] { return checked_json(read_file(path, kMostJsonBytes), path.string()); });
}

void write_json(const std::filesystem::path& path, const nlohmann::json& json) {
  write_file(path, json.dump(2) + "\n");
}

}  // namespace sextant
