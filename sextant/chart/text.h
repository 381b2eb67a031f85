// Text for pictures: escaping, measuring and shortening, and number formatting for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant::chart {

// Escapes text for XML content and quoted attributes. Bytes that are not UTF-8, and characters that
// XML forbids, become U+FFFD: names come from files and command lines.
std::string escape(std::string_view text);

// An upper bound of the width of `text` in pixels at a font size of `size` pixels: character widths
// are those of DejaVu Sans, the widest of the usual sans-serif fonts.
double text_width(std::string_view text, double size);

// `text`, or the longest prefix of it that fits into `width` with an ellipsis.
std::string shortened(std::string_view text, double size, double width);

// Formats a number for people: about `digits` significant digits, a true minus sign, thin spaces
// between thousands from 10 000 on, powers of ten where plain digits would be long. NaN is a dash.
std::string pretty(double value, int digits = 5);
// The same with a fixed number of decimals and no powers of ten.
std::string pretty_fixed(double value, int decimals);

// Formats a coordinate, rounded to a hundredth of a pixel.
std::string pixels(double value);

// A name of lower-case letters, digits and dashes: "Loss against length" -> "loss-against-length".
std::string slug(std::string_view title);

// A CSV field (RFC 4180), quoted if it contains a separator, a quote or a line break.
std::string csv_field(const std::string& text);

std::string base64(std::string_view bytes);

// The text of reports: paragraphs, lists, `code` and **strong** (report.h describes the syntax).

// As HTML, with everything else escaped.
std::string prose_html(std::string_view text);

// The parts of a line. An unpaired sign is plain.
struct ProseSpan {
  enum class Kind { kPlain, kStrong, kCode } kind = Kind::kPlain;
  std::string_view words;
};
std::vector<ProseSpan> spans(std::string_view line);

}  // namespace sextant::chart
