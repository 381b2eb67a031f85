// Numbers in tables and sentences, with a fixed number of decimals. A value that rounds to zero is
// printed as zero without a minus sign.
#pragma once

#include <string>

namespace sextant::lab {

std::string fixed(double value, int decimals = 3);         // "1.563", "-0.011", "0.000"
std::string signed_fixed(double value, int decimals = 3);  // "+1.563", "-0.011", "+0.000"

}  // namespace sextant::lab
