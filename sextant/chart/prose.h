// Plain text as HTML: paragraphs, lists, `code` and **strong** (report.h says which signs do what);
// all else is escaped.
#pragma once

#include <string>
#include <string_view>

namespace sextant::chart {

std::string prose_html(std::string_view text);

}  // namespace sextant::chart
