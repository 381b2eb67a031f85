#include "sextant/cli/nearest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <tuple>

namespace sextant::cli {
namespace {

// Levenshtein's distance, row by row.
size_t edits(std::string_view from, std::string_view to) {
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

}  // namespace

std::vector<std::string> nearest(std::string_view word, std::span<const std::string> names) {
  constexpr size_t kCount = 3;
  constexpr size_t kShortest = 3;  // shorter words are contained in many names by chance
  std::string lower(word);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  word = lower;
  const auto rank = [&](const std::string& name) {
    const bool related =
        std::min(word.size(), name.size()) >= kShortest &&
        (name.find(word) != std::string::npos || word.find(name) != std::string_view::npos);
    return std::tuple(!related, edits(word, name), name);
  };
  std::vector<std::string> found(names.begin(), names.end());
  std::ranges::sort(found, {}, rank);
  found.resize(std::min(found.size(), kCount));
  return found;
}

}  // namespace sextant::cli
