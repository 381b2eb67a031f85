// A report as Markdown, for a repository or an issue. Charts and maps are SVG files beside it,
// which follow the reader's light or dark mode and have larger print on a narrow screen; other
// blocks are text: small print of a cell follows after a line break, settings are a table, and
// downloads are left out.
#pragma once

#include <string>
#include <vector>

#include "sextant/chart/report.h"

namespace sextant::chart {

struct Markdown {
  struct Figure {
    std::string file, svg;
  };
  std::string text;  // lines of at most 100 columns, but for tables and code
  std::vector<Figure> figures;
};

// `folder` is that of the figures as the text names it: "figures".
Markdown markdown(const Report& report, const std::string& folder);

}  // namespace sextant::chart
