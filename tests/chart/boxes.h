// The places of text in a chart.
#pragma once

#include <string>
#include <vector>

#include "tests/chart/xml.h"

namespace sextant::chart {

struct TextBox {
  double left = 0, top = 0, right = 0, bottom = 0;
  std::string words;
};

// The boxes of all <text> elements that are not rotated. Sizes are from chart.css, widths from a
// wide font, so boxes that do not overlap here do not overlap in other fonts either.
std::vector<TextBox> text_boxes(const Element& svg);

// "a | b" for any two boxes that overlap.
std::vector<std::string> overlaps(const std::vector<TextBox>& boxes);

// The text of boxes that extend beyond an image of this size.
std::vector<std::string> cut_off(const std::vector<TextBox>& boxes, double width, double height);

}  // namespace sextant::chart
