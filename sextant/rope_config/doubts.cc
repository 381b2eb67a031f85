#include "sextant/rope_config/doubts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sextant/rope_config/explain.h"

namespace sextant {
namespace {

// Phrases of the sentences; tests/rope_config/doubts_test.cc has a configuration for each.
constexpr std::array<std::string_view, 8> kPhrases = {
    " is in the file, but ",   " in the file, but llama.cpp",
    " are both in the file",   "the stretch reaches only",
    "has no effect",           "not read, as ",
    "; rope_scaling is taken", " helps nothing beyond "};

bool is_stretched(const RopeConfig& config) {
  if (!config.rotates) return false;
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  const bool plain = fixed != nullptr && std::holds_alternative<std::monostate>(*fixed);
  const bool part = fixed != nullptr && std::holds_alternative<Proportional>(*fixed);
  return !plain && !part;
}

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

void warn_of_idle_stretch(std::vector<RopeConfig>& configs) {
  RopeConfig* first = nullptr;
  int64_t reach = 0;
  for (RopeConfig& config : configs) {
    if (!is_stretched(config)) continue;
    const int64_t trained = trained_length(config), seen = largest_distance(config) + 1;
    if (seen == 1 || !config.bounded_in.empty() || config.dual_chunk > 0 || trained == 0 ||
        seen > trained) {
      return;
    }
    reach = std::max(reach, seen);
    if (first == nullptr) first = &config;
  }
  if (first == nullptr) return;
  const bool still = std::ranges::any_of(configs, [](const RopeConfig& x) { return !x.rotates; });
  first->scaling.warnings.push_back(
      "the stretch reaches only layers with a window of " + std::to_string(reach) +
      " positions, which see no further than the model was trained to (" +
      std::to_string(trained_length(*first)) + "): it changes their frequencies and helps nothing" +
      (still ? "; the layers that see everything do not rotate (NoPE), so that no stretch is needed"
             : ""));
}

}  // namespace sextant
