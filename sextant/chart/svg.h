// SVG elements as text, and the parts that line charts and heat maps share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sextant/chart/chart.h"

namespace sextant::chart {

// A rectangle in pixels; y grows downwards.
struct Box {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

enum class Anchor { kStart, kMiddle, kEnd };

std::string text(double x, double y, Anchor anchor, std::string_view css, std::string_view words);
std::string line(double x1, double y1, double x2, double y2, std::string_view css);
// A tooltip for the enclosing element.
std::string hover(std::string_view words);

// The size of a picture, and which of its texts are drawn; the surrounding page shows the others.
struct Canvas {
  int width = 760, height = 440;
  bool heading = true;         // title and subtitle
  bool end_labels = true;      // names at the ends of lines; otherwise a legend elsewhere
  bool hover = true;           // the viewer's own tooltips
  double left = 0, right = 0;  // at least so much room beside the plot, so that panels line up
  bool square = true;          // square matrices have square cells
};

struct Drawing {
  int width = 0, height = 0;
  Box plot;          // the area inside the axes
  std::string body;  // SVG elements
};

// Title and subtitle, wrapped; moves `top` below them.
std::string heading(std::string_view title, std::string_view subtitle, int width, double& top);

// Panels one above the other, as tall as they need. Throws Error if the data of one do not fit
// together (chart.h).
Drawing draw(const Panels& panels, const Canvas& canvas);

// A standalone SVG document. Without `dark` it is for paper: white in either mode.
std::string document(const Drawing& drawing, std::string_view title, bool dark);
// One that shows `narrow` where the picture is less than 480 pixels wide, for pages that have only
// one file for all screens.
std::string document(const Drawing& wide, const Drawing& narrow, std::string_view title);

}  // namespace sextant::chart
