#include "sextant/base/printable.h"

#include <array>
#include <cstdio>
#include <optional>

#include "sextant/base/unicode.h"

namespace sextant {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool is_hidden(char32_t code) {
  const auto within = [&](char32_t first, char32_t last) { return first <= code && code <= last; };
  return code < 0x20 || within(0x7f, 0x9f) ||
         within(0x2028, 0x202e) ||  // separators of lines and paragraphs, overrides of direction
         within(0x2066, 0x2069);    // isolates of direction
}

std::string escaped(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", static_cast<unsigned>(code));
  return text.data();
}

std::string without_hidden(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view before = text;
    const std::optional<char32_t> code = take_code_point(text);
    if (!code) {
      out += kReplacement;
      text.remove_prefix(1);
    } else if (is_hidden(*code) && kept.find(before[0]) == std::string_view::npos) {
      out += escaped(*code);
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return without_hidden(text, ""); }

std::string printable_lines(std::string_view text) { return without_hidden(text, "\n\t"); }

std::string printable_message(std::string_view text) {
  std::string out = printable_lines(text);
  for (size_t end = out.find('\n'); end != std::string::npos; end = out.find('\n', end + 1))
    if (end + 1 < out.size() && out.compare(end + 1, 2, "  ") != 0) out.insert(end + 1, "  ");
  return out;
}

}  // namespace sextant
