// Suggestions for a name that was mistyped.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::cli {

// The three of `names` that take the fewest edits (a letter added, removed or replaced) to become
// `word` in lower case, nearest first. Names that contain the word or are contained in it come
// before the others.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> names);

}  // namespace sextant::cli
