// The tables of a survey as values: which rows and columns there are. tables_text() prints them as
// plain text, and result_table.h makes tables of reports of them.
#pragma once

#include <string>
#include <vector>

#include "sextant/lab/report/findings.h"
#include "sextant/lab/report/result_table.h"

namespace sextant::lab {

// Sliding loss, loss and the small task of the trained methods; one table of stretches for each
// method whose weights others read; methods with dropped channels; products of added positions;
// attention of all methods.
std::vector<ResultTable> tables(const Findings& findings);

// A caveat to print with the tables.
const char* caveat(const Settings& settings);

// The tables of a survey as plain text.

// All tables except those that are for the report only.
std::string tables_text(const Findings& findings);

}  // namespace sextant::lab
