// SVG elements as text, and the parts that line charts and heat maps share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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

// A standalone SVG document. Without `dark` it is for paper: white in either mode.
std::string document(const Drawing& drawing, std::string_view title, bool dark);
// One that shows `narrow` where the picture is less than 480 pixels wide, for pages that have only
// one file for all screens.
std::string document(const Drawing& wide, const Drawing& narrow, std::string_view title);

// The appearance of series and of heat maps. The index of a series determines its colour, dash and
// point shape, so that readers with colour blindness, and printers, have two more marks to
// distinguish series.
struct Look {
  std::string css;     // CSS class of the colour, such as "look3": see chart.css
  std::string dashes;  // value of stroke-dasharray; empty for a solid line
  int shape = 0;
};

Look look(size_t place);

// The marker of one point, as path data, `radius` pixels around (x, y). There are seven shapes;
// further indices repeat them.
std::string point_path(int shape, double x, double y, double radius);

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
};

// t from 0 to 1; other values take the colour of the nearer end. Sequential: viridis (van der Walt
// and Smith 2015), from a table. Diverging: blue, white at 1/2, red.
Colour colour(Colours colours, double t);

// The style sheets and the script of charts and reports, from the .css and .js files in this
// folder; the build embeds their text in the library.
std::string_view chart_css();       // every chart
std::string_view chart_dark_css();  // overrides for dark mode
std::string_view report_css();
std::string_view report_js();

// The cells of a heat map as a raster image, by libpng. Palette entry 255 is transparent; the
// others are the palette's colours.
inline constexpr uint8_t kTransparent = 255;
struct Pixels {
  int64_t width = 0, height = 0;
  std::span<const uint8_t> indices;  // row-major, top row first
  std::span<const Colour> palette;   // up to 255
};

std::string encode_png(const Pixels& pixels);

// Renders an SVG document as PNG by librsvg, with `zoom` pixels per SVG unit.
std::string rasterise(const std::string& svg, double zoom);

}  // namespace sextant::chart
