#include "sextant/rope_config/doubts.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sextant {
namespace {

// Phrases of the sentences; tests/rope_config/doubts_test.cc has a configuration for each.
constexpr std::array<std::string_view, 8> kPhrases = {
    " is in the file, but ",   " in the file, but llama.cpp",
    " are both in the file",   "the stretch reaches only",
    "has no effect",           "not read, as ",
    "; rope_scaling is taken", " helps nothing beyond "};

}  // namespace

std::vector<std::string> doubts_of(const RopeConfig& config) {
  std::vector<std::string> found;
  for (const std::string& warning : config.scaling.warnings) {
    const bool doubtful = std::ranges::any_of(kPhrases, [&](std::string_view phrase) {
      return warning.find(phrase) != std::string::npos;
    });
    if (doubtful) found.push_back(warning);
  }
  return found;
}

}  // namespace sextant
