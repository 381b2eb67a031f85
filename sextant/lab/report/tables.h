// The tables of a survey as values: which rows and columns there are. tables_text.h prints them as
// plain text, and page.cc as HTML.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sextant/lab/report/findings.h"

namespace sextant::lab {

struct ResultTable {
  struct Column {
    std::string name, unit;
    bool sign = false;  // printed with + or -
    int decimals = 3;
  };
  struct Row {
    std::string label;
    std::vector<std::optional<MeanInterval>> values;  // one per column
    std::optional<Verdict> verdict = {};
    std::string remark = {};  // "(1 of 3 diverged)", or empty
  };
  std::string caption;
  std::string unit;  // of the columns that have none of their own, or empty
  std::vector<Column> columns;
  std::vector<Row> rows;
  bool in_report_only = false;  // too large for a terminal
};

// Sliding loss, loss and the small task of the trained methods; one table of stretches for each
// method whose weights others read; methods with dropped channels; products of added positions;
// attention of all methods.
std::vector<ResultTable> tables(const Findings& findings);

// A caveat to print with the tables.
const char* caveat(const Settings& settings);

}  // namespace sextant::lab
