#include "sextant/lab/result/format_number.h"

#include <fmt/format.h>

namespace sextant::lab {

std::string signed_fixed(double value, int decimals) {
  std::string text = fmt::format("{:+.{}f}", value, decimals);
  if (text.find_first_of("123456789ni") == std::string::npos) text.front() = '+';
  return text;
}

std::string fixed(double value, int decimals) {
  const std::string text = signed_fixed(value, decimals);
  return text.front() == '+' ? text.substr(1) : text;
}

std::string signed_fixed(const MeanInterval& interval) {
  return fmt::format("{} ± {:.3f}", signed_fixed(interval.mean), interval.half.value());
}

}  // namespace sextant::lab
