// Numbers in tables and sentences, with a fixed number of decimals. A value that rounds to zero is
// printed as zero without a minus sign.
#pragma once

#include <string>

#include "sextant/lab/result/interval.h"

namespace sextant::lab {

std::string fixed(double value, int decimals = 3);         // "1.563", "-0.011", "0.000"
std::string signed_fixed(double value, int decimals = 3);  // "+1.563", "-0.011", "+0.000"

// "-0.011 ± 0.004": a mean that has an interval, and half the interval's width.
std::string signed_fixed(const MeanInterval& interval);

}  // namespace sextant::lab
