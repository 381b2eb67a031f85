// Suggestions for a mistyped name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::cli {

// Returns the three of `names` with the smallest edit distance (letters added, removed or replaced)
// to `word` in lower case, nearest first. Names that contain the word or are contained in it come
// before all others.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> names);

}  // namespace sextant::cli
