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

namespace sextant {

// Levenshtein distance between names: the smallest number of letters to add, remove or replace to
// turn `from` into `to`.
inline size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  for (size_t n = 0; n < row.size(); ++n) row[n] = n;
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

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
