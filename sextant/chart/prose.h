// Converts plain text to HTML: paragraphs, lists, `code` and **strong** (report.h describes the
// syntax); everything else is escaped.
#pragma once

#include <string>
#include <string_view>

namespace sextant::chart {

std::string prose_html(std::string_view text);

}  // namespace sextant::chart
