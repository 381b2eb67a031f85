// The list of readers of untrusted files: fuzz/target.cc fuzzes them, and tests/fuzz runs mutated
// files through them in every test run. A reader takes any bytes and returns or throws Error.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace sextant::fuzz {

struct Reader {
  const char* name;
  void (*read)(const std::string& bytes);
  std::vector<std::string> (*samples)();  // valid inputs, from which mutations start
  // Recomputes checksums, so that mutations reach the code behind their checks; or null.
  void (*seal)(std::string& bytes) = nullptr;
};

std::span<const Reader> readers();

}  // namespace sextant::fuzz
