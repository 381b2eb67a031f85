// The readers of files that anybody may have written, as one list: what is fuzzed (fuzz/target.cc)
// and mutated in every test run (tests/fuzz). A reader takes any bytes; it returns, or throws
// Error.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace sextant::fuzz {

struct Reader {
  const char* name;
  void (*read)(const std::string& bytes);
  std::vector<std::string> (*samples)();  // that it reads; mutations start from them
  // Makes checksums right again, so that what lies behind them is reached; or null.
  void (*seal)(std::string& bytes) = nullptr;
};

std::span<const Reader> readers();

}  // namespace sextant::fuzz
