#include "sextant/cli/nearest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <tuple>

#include "sextant/base/edit_distance.h"

namespace sextant::cli {
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> names) {
  constexpr size_t kCount = 3;
  constexpr size_t kShortest = 3;  // many names contain shorter words by chance
  std::string lower(word);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  word = lower;
  const auto rank = [&](const std::string& name) {
    const bool related =
        std::min(word.size(), name.size()) >= kShortest &&
        (name.find(word) != std::string::npos || word.find(name) != std::string_view::npos);
    return std::tuple(!related, edit_distance(word, name), name);
  };
  std::vector<std::string> found(names.begin(), names.end());
  std::ranges::sort(found, {}, rank);
  found.resize(std::min(found.size(), kCount));
  return found;
}

}  // namespace sextant::cli
