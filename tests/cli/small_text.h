// Text for the small models and surveys of the command's tests.
#pragma once

#include <filesystem>
#include <string>

#include "tests/lab/synthetic_text.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::cli {

// Writes 40 documents of 2000 bytes, a file for each.
inline void write_small_text(const std::filesystem::path& folder) {
  uint64_t number = 0;
  for (const std::string& document : synthetic_documents(40, 2000)) {
    write_text(folder / (std::to_string(number++) + ".txt"), document);
  }
}

}  // namespace sextant::cli
