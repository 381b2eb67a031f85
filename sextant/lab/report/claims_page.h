// The claims of the literature in the report of one survey or several.
#pragma once

#include <span>
#include <string>

#include "sextant/chart/report.h"
#include "sextant/lab/report/findings.h"

namespace sextant::lab {

// The claims that the surveys have checked: their number by subject and outcome, and a table with a
// row for each. With several surveys a column has their lengths, if these differ, and equal rows of
// two surveys are one. `question`: only claims on the open question whose slug begins with it
// ("why-10000"), without numbers; empty: all. The section has no blocks without claims.
chart::Section claims_section(std::span<const Findings* const> surveys,
                              const std::string& question = "");

}  // namespace sextant::lab
