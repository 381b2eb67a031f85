#include "sextant/rope_config/parse_number.h"

#include <cmath>
#include <exception>

namespace sextant {

std::optional<double> parse_number(const std::string& text) {
  try {
    size_t end = 0;
    const double value = std::stod(text, &end);
    if (end == text.size() && std::isfinite(value)) return value;
  } catch (const std::exception&) {  // the exceptions of std::stod carry no more information
  }
  return {};
}

}  // namespace sextant
