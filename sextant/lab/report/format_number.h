// Numbers in tables and sentences: a fixed number of decimals, and what rounds to zero is zero,
// without a minus.
#pragma once

#include <string>

namespace sextant::lab {

std::string fixed(double value, int decimals = 3);         // "1.563", "-0.011", "0.000"
std::string signed_fixed(double value, int decimals = 3);  // "+1.563", "-0.011", "+0.000"

}  // namespace sextant::lab
