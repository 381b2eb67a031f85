// A number as people write it on a command line.
#pragma once

#include <optional>
#include <string>

namespace sextant {

// The finite number that the whole text is; none for anything else.
std::optional<double> parse_number(const std::string& text);

}  // namespace sextant
