// Texts of pictures: their widths by a table of characters in hundredths of the font size, numbers
// as they are printed, and escapes of XML.
#include "sextant/chart/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "sextant/base/unicode.h"

namespace sextant::chart {
namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr std::string_view kMinus = "\u2212", kThinSpace = "\u2009", kEllipsis = "\u2026";

struct Decoded {
  char32_t point;
  size_t bytes;  // consumed from the input, at least 1
};

// The first character of a non-empty text; of bytes that are not UTF-8 the first one.
Decoded decode(std::string_view text) {
  std::string_view rest = text;
  const std::optional<char32_t> point = take_code_point(rest);
  return point ? Decoded{*point, text.size() - rest.size()} : Decoded{kReplacement, 1};
}

bool allowed_in_xml(char32_t point) {
  if (point < 0x20) return point == '\t' || point == '\n' || point == '\r';
  return point != 0xFFFE && point != 0xFFFF;
}

// Widths of the characters from space to tilde, in hundredths of the font size.
constexpr std::array<uint8_t, 95> kWidths = {
    32, 40, 46, 84, 64, 95, 78, 27, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79,
    60, 79, 69, 63, 61, 73, 68, 99, 69,  61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63,
    63, 28, 28, 58, 28, 97, 63, 61, 63,  63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84};

// The width of a character in hundredths of the font size. Sums of integers are exact, so a text
// that fits does so in whatever order its widths are added.
int64_t width_of(char32_t point) {
  if (point >= 0x20 && point < 0x7F) return kWidths[point - 0x20];
  if (point == 0x2009) return 20;
  const bool wide = point >= 0x1100 && point < 0xFFFD;  // roughly: CJK; also dashes, arrows, signs
  return wide && point >= 0x2E80 ? 100 : 84;
}

double in_pixels(int64_t hundredths, double size) {
  return static_cast<double>(hundredths) * size / 100;
}

std::string superscript(int value) {
  constexpr std::array<std::string_view, 10> kDigits = {"⁰", "¹", "²", "³", "⁴",
                                                        "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = value < 0 ? "⁻" : "";
  for (const char c : std::to_string(std::abs(value))) out += kDigits[static_cast<size_t>(c - '0')];
  return out;
}

// "1.50" -> "1.5", "2.00" -> "2"
std::string trimmed(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.ends_with('.')) number.pop_back();
  return number;
}

// "-12345.5" -> "−12 345.5"
std::string dressed(std::string_view plain) {
  std::string out;
  if (plain.starts_with('-')) {
    plain.remove_prefix(1);
    if (plain.find_first_not_of("0.") != std::string_view::npos) out = kMinus;
  }
  const size_t whole = std::min(plain.find('.'), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0 && whole > 4) out += kThinSpace;
    out += plain[i];
  }
  return out;
}

std::string not_a_number(double value) {
  return std::isnan(value) ? "\u2013" : value > 0 ? "\u221e" : std::string(kMinus) + "\u221e";
}

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

std::string escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Decoded next = decode(text);
    const std::string_view bytes = text.substr(0, next.bytes);
    text.remove_prefix(next.bytes);
    if (next.point == '&') {
      out += "&amp;";
    } else if (next.point == '<') {
      out += "&lt;";
    } else if (next.point == '>') {
      out += "&gt;";
    } else if (next.point == '"') {
      out += "&quot;";
    } else if (next.point == kReplacement || !allowed_in_xml(next.point)) {
      out += "\uFFFD";
    } else {
      out += bytes;
    }
  }
  return out;
}

double text_width(std::string_view text, double size) {
  int64_t width = 0;
  while (!text.empty()) {
    const Decoded next = decode(text);
    text.remove_prefix(next.bytes);
    width += width_of(next.point);
  }
  return in_pixels(width, size);
}

std::string shortened(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  std::string out;
  int64_t taken = width_of(decode(kEllipsis).point);
  while (!text.empty()) {
    const Decoded next = decode(text);
    taken += width_of(next.point);
    if (in_pixels(taken, size) > width) break;
    out += text.substr(0, next.bytes);
    text.remove_prefix(next.bytes);
  }
  return out + std::string(kEllipsis);
}

std::string pretty(double value, int digits) {
  if (!std::isfinite(value)) return not_a_number(value);
  if (value == 0) return "0";
  const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
  const size_t e = scientific.find('e');
  const int exponent = std::stoi(scientific.substr(e + 1));
  if (exponent >= -4 && exponent < 7) {
    const int decimals = std::max(0, digits - 1 - exponent);
    return dressed(trimmed(fmt::format("{:.{}f}", value, decimals)));
  }
  return dressed(trimmed(scientific.substr(0, e))) + "×10" + superscript(exponent);
}

std::string pretty_fixed(double value, int decimals) {
  if (!std::isfinite(value)) return not_a_number(value);
  return dressed(fmt::format("{:.{}f}", value, decimals));
}

std::string pixels(double value) {
  const std::string out = trimmed(fmt::format("{:.2f}", value));
  return out == "-0" ? "0" : out;
}

std::string slug(std::string_view title) {
  std::string out;
  for (const char c : title) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      out += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) out += k <= count ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

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
