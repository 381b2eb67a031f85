// The last line of a worker's log, for messages.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace sextant::lab {

// The last line that is not empty; empty if there is none.
inline std::string last_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace sextant::lab
