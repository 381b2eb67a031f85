// Where the words of a picture lie.
#pragma once

#include <string>
#include <vector>

#include "tests/chart/xml.h"

namespace sextant::chart {

struct TextBox {
  double left = 0, top = 0, right = 0, bottom = 0;
  std::string words;
};

// Of all <text> elements that are not turned. The sizes are those of chart.css, the widths those of
// a wide font, so boxes that part here part everywhere.
std::vector<TextBox> text_boxes(const Element& svg);

// "a | b" for each two boxes that overlap.
std::vector<std::string> overlaps(const std::vector<TextBox>& boxes);

// The words of boxes that reach out of a picture of this size.
std::vector<std::string> cut_off(const std::vector<TextBox>& boxes, double width, double height);

}  // namespace sextant::chart
