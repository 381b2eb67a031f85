// Parses a number of a command line.
#pragma once

#include <optional>
#include <string>

namespace sextant {

// The finite number that the whole text represents; none for any other text.
std::optional<double> parse_number(const std::string& text);

}  // namespace sextant
