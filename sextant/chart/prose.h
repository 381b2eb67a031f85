// The text of reports: paragraphs, lists, `code` and **strong** (report.h describes the syntax).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant::chart {

// As HTML, with everything else escaped.
std::string prose_html(std::string_view text);

// The parts of a line. An unpaired sign is plain.
struct ProseSpan {
  enum class Kind { kPlain, kStrong, kCode } kind = Kind::kPlain;
  std::string_view words;
};
std::vector<ProseSpan> spans(std::string_view line);

}  // namespace sextant::chart
