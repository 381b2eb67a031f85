#include "sextant/chart/prose.h"

#include <fmt/format.h>

#include <algorithm>

#include "sextant/chart/text.h"

namespace sextant::chart {
namespace {

std::string inline_prose(std::string_view line) {
  std::string out;
  for (const auto& [kind, words] : spans(line)) {
    const char* const tag = kind == ProseSpan::Kind::kStrong ? "strong" : "code";
    out += kind == ProseSpan::Kind::kPlain ? escape(words)
                                           : fmt::format("<{0}>{1}</{0}>", tag, escape(words));
  }
  return out;
}

// A block of lines without an empty line between them: a paragraph, a list, or several of these in
// sequence.
std::string block_of_lines(std::string_view block) {
  std::string out;
  const char* open = "";
  const auto turn_to = [&](const char* tag) {
    if (std::string_view(open) == tag) return false;
    if (*open != 0) out += fmt::format("</{}>\n", open);
    if (*tag != 0) out += fmt::format("<{}>", tag);
    open = tag;
    return true;
  };
  while (!block.empty()) {
    const size_t end = std::min(block.find('\n'), block.size());
    std::string_view row = block.substr(0, end);
    block.remove_prefix(std::min(end + 1, block.size()));
    if (row.empty()) continue;
    if (row.starts_with("- ")) {
      turn_to("ul");
      out += "<li>" + inline_prose(row.substr(2)) + "</li>";
    } else {
      if (!turn_to("p")) out += '\n';
      out += inline_prose(row);
    }
  }
  turn_to("");
  return out;
}

}  // namespace

std::vector<ProseSpan> spans(std::string_view line) {
  std::vector<ProseSpan> all;
  while (!line.empty()) {
    const bool strong = line.starts_with("**"), code = line.starts_with('`');
    const std::string_view sign = strong ? "**" : "`";
    const size_t end = strong || code ? line.find(sign, sign.size()) : std::string_view::npos;
    if (end != std::string_view::npos && end > sign.size()) {
      all.push_back({.kind = strong ? ProseSpan::Kind::kStrong : ProseSpan::Kind::kCode,
                     .words = line.substr(sign.size(), end - sign.size())});
      line.remove_prefix(end + sign.size());
      continue;
    }
    const size_t plain = std::min(line.find_first_of("*`", 1), line.size());
    all.push_back({.words = line.substr(0, plain)});
    line.remove_prefix(plain);
  }
  return all;
}

std::string prose_html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find("\n\n"), text.size());
    out += block_of_lines(text.substr(0, end));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return out;
}

}  // namespace sextant::chart
