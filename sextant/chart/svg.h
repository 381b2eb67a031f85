// SVG elements as text, and what line charts and heat maps share when they are drawn.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sextant/chart/chart.h"

namespace sextant::chart {

// Pixels; y grows downwards.
struct Box {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

enum class Anchor { kStart, kMiddle, kEnd };

std::string text(double x, double y, Anchor anchor, std::string_view css, std::string_view words);
std::string line(double x1, double y1, double x2, double y2, std::string_view css);
// What appears when the pointer rests on the element around it.
std::string hover(std::string_view words);

// How large a picture is, and which of its words are the business of the page around it.
struct Canvas {
  int width = 760, height = 440;
  bool heading = true;     // title and subtitle
  bool end_labels = true;  // names at the ends of lines, otherwise a legend elsewhere
  bool hover = true;       // the viewer's own small print under the pointer
};

struct Drawing {
  int width = 0, height = 0;
  Box plot;          // where the axes are
  std::string body;  // elements
};

// Title and subtitle, wrapped; moves `top` below them.
std::string heading(std::string_view title, std::string_view subtitle, int width, double& top);

// A file of its own. Without `dark` it is for paper: white whatever its reader likes.
std::string document(const Drawing& drawing, std::string_view title, bool dark);

}  // namespace sextant::chart
