// The tables of a survey as plain text.
#pragma once

#include <string>

#include "sextant/lab/report/findings.h"

namespace sextant::lab {

// All tables except those that are for the report only.
std::string tables_text(const Findings& findings);

}  // namespace sextant::lab
