#include "tests/chart/boxes.h"

#include "sextant/chart/text.h"

namespace sextant::chart {
namespace {

void add_boxes(const Element& element, std::vector<TextBox>& out) {
  if (!element.attribute("transform").empty()) return;
  if (element.name == "text" && !element.text.empty()) {
    const double size = element.is("title") ? 15 : element.is("small") ? 11 : 12;
    const double width = text_width(element.text, size) * (element.is("title") ? 1.12 : 1);
    const double x = std::stod(element.attribute("x")), y = std::stod(element.attribute("y"));
    const std::string anchor = element.attribute("text-anchor");
    const double left = anchor == "end" ? x - width : anchor == "middle" ? x - width / 2 : x;
    out.push_back({left, y - 0.76 * size, left + width, y + 0.24 * size, element.text});
  }
  for (const Element& child : element.children) add_boxes(child, out);
}

}  // namespace

std::vector<TextBox> text_boxes(const Element& svg) {
  std::vector<TextBox> out;
  add_boxes(svg, out);
  return out;
}

std::vector<std::string> overlaps(const std::vector<TextBox>& boxes) {
  std::vector<std::string> out;
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const TextBox &a = boxes[k], &b = boxes[i];
      const bool apart =
          a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      if (!apart) out.push_back(a.words + " | " + b.words);
    }
  }
  return out;
}

std::vector<std::string> cut_off(const std::vector<TextBox>& boxes, double width, double height) {
  std::vector<std::string> out;
  for (const TextBox& box : boxes) {
    const bool inside =
        box.left >= 0 && box.top >= 0 && box.right <= width + 1 && box.bottom <= height;
    if (!inside) out.push_back(box.words);
  }
  return out;
}

}  // namespace sextant::chart
