// Text in pictures: escaped, measured and shortened; numbers as people write them.
#pragma once

#include <string>
#include <string_view>

namespace sextant::chart {

// For XML text and quoted attributes. Bytes that are no UTF-8, and characters that XML forbids,
// become U+FFFD: names come from files and command lines.
std::string escape(std::string_view text);

// The width in pixels that `text` takes at a font size of `size` pixels, at most: the widths are
// those of DejaVu Sans, the widest of the usual sans-serif fonts.
double text_width(std::string_view text, double size);

// `text`, or as much of it as fits into `width` and an ellipsis.
std::string shortened(std::string_view text, double size, double width);

// A number for a person: about `digits` significant ones, a true minus sign, thin spaces between
// thousands from 10 000 on, powers of ten where plain digits would be long. NaN is a dash.
std::string pretty(double value, int digits = 5);
// The same with a fixed number of decimals and no powers of ten.
std::string pretty_fixed(double value, int decimals);

// A coordinate, to a hundredth of a pixel.
std::string pixels(double value);

std::string base64(std::string_view bytes);

}  // namespace sextant::chart
