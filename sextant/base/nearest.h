// Suggestions for a mistyped name.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sextant/base/edit_distance.h"

namespace sextant {

// Returns the three of `names` with the smallest edit distance (letters added, removed or replaced)
// to `word` in lower case, nearest first. Names that contain the word or are contained in it come
// before all others.
inline std::vector<std::string> nearest(std::string_view word, std::span<const std::string> names) {
  constexpr size_t kCount = 3;
  constexpr size_t kShortest = 3;  // many names contain shorter words by chance
  constexpr size_t kLongest = 64;  // no name is as long
  std::string lower(word.substr(0, kLongest));
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto rank = [&](const std::string& name) {
    const bool related =
        std::min(lower.size(), name.size()) >= kShortest &&
        (name.find(lower) != std::string::npos || lower.find(name) != std::string::npos);
    return std::tuple(!related, edit_distance(lower, name), name);
  };
  std::vector<std::string> found(names.begin(), names.end());
  std::ranges::sort(found, {}, rank);
  found.resize(std::min(found.size(), kCount));
  return found;
}

// "a, b, c (the nearest of 37)", for an error about an unknown `word`.
inline std::string nearest_text(std::string_view word, std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : nearest(word, names)) text += (text.empty() ? "" : ", ") + name;
  return text + " (the nearest of " + std::to_string(names.size()) + ")";
}

}  // namespace sextant
