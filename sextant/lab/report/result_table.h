// A table of a survey as values: columns, each with a function from a method to its value, and the
// methods that are its rows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sextant/chart/report.h"
#include "sextant/lab/report/findings.h"
#include "sextant/lab/report/method_result.h"

namespace sextant::lab {

struct ResultTable {
  struct Column {
    std::string name, unit = {};
    bool sign = false;  // printed with + or -
    int decimals = 3;
  };
  struct Row {
    std::string label;
    std::vector<std::optional<MeanInterval>> values = {};  // one per column
    std::optional<Verdict> verdict = {};
    std::string remark = {};              // "(1 of 3 diverged)", or empty
    std::vector<std::string> notes = {};  // to the values: one per column
  };
  std::string name;  // "sliding": of its part of a report
  std::string caption;
  std::string unit = {};  // of the columns that have none of their own, or empty
  std::vector<Column> columns = {};
  std::vector<Row> rows = {};
  bool in_report_only = false;  // too large for a terminal
};

struct ValueColumn {
  ResultTable::Column column;
  std::function<std::optional<MeanInterval>(const MethodResult&)> value;
  std::function<std::string(const MethodResult&)> note = {};
};

// Adds the columns, and a row for each method. Values that were not kept are NaN: they are left
// out, and so are columns that then have none.
void fill(ResultTable& table, const std::vector<const MethodResult*>& methods,
          const std::vector<ValueColumn>& columns, bool with_verdicts,
          const std::function<std::string(const MethodResult&)>& remark);

// "(1 of 3 diverged)"; empty if none did.
std::string remark_of(const MethodResult& method);

// The table of a report. The verdict and then signed columns, such as the change, come first, so
// that a narrow screen shows them.
chart::Table report_table(const ResultTable& table);

// Differences between methods, and the table that sets each beside others: what it costs at L, how
// its loss changes at each length, how far it is behind the best, and whether it finds far pairs.

// The methods that were trained, if `base` is empty, or those that are tested with the weights of
// this one, which follows as the last; by loss at the longest length, with those that have not
// learned the text last.
ResultTable comparison(const Findings& findings, const std::string& base);

// A measure of a method minus that of the other; nullopt if they have no seed in common or only
// means were kept.
std::optional<MeanInterval> behind(const MethodResult& method, const MethodResult& other,
                                   const Settings& settings, Measure measure = Measure::kLongest);

// Accuracies of the small task in sequences of a length: pairs at the beginning, and near ones; or
// marks of all distances.
ValueColumn far_column(const Settings& settings, int64_t length);
ValueColumn near_column(const Settings& settings, int64_t length);
ValueColumn direction_column(int64_t length);

// The tables of a survey (tables.cc): sliding loss, loss and the small task of the trained methods;
// one table of stretches for each method whose weights others read; methods with dropped channels;
// products of added positions; attention of all methods.
std::vector<ResultTable> tables(const Findings& findings);

// A caveat to print with the tables.
const char* caveat(const Settings& settings);

// All tables as plain text, except those that are for the report only.
std::string tables_text(const Findings& findings);

}  // namespace sextant::lab
