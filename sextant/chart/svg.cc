// Elements are text with numbers that are rounded once. Colours of series are classes of the style
// sheet, so that a dark page changes them.
#include "sextant/chart/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "sextant/chart/text.h"

namespace sextant::chart {
namespace {

// Wraps to at most two lines; longer text ends in an ellipsis.
std::vector<std::string> wrapped(std::string_view words, double size, double width) {
  if (text_width(words, size) <= width) return {std::string(words)};
  size_t cut = std::string_view::npos;
  for (size_t space = words.find(' '); space != std::string_view::npos;
       space = words.find(' ', space + 1)) {
    if (text_width(words.substr(0, space), size) > width) break;
    cut = space;
  }
  if (cut == std::string_view::npos) return {shortened(words, size, width)};
  return {std::string(words.substr(0, cut)), shortened(words.substr(cut + 1), size, width)};
}

std::string document(int width, int height, std::string_view title, std::string_view css,
                     std::string_view body) {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" viewBox=\"0 0 {0} "
      "{1}\" width=\"{0}\" height=\"{1}\">\n"
      "{2}\n<style>\n{3}{4}</style>\n"
      "<rect class=\"paper\" width=\"{0}\" height=\"{1}\"/>\n{5}</svg>\n",
      width, height, hover(title), chart_css(), css, body);
}

constexpr size_t kColours = 10;
constexpr std::array<const char*, 3> kDashes = {"", "7 4", "2 4"};

// 11 of viridis' 256 entries; the error of linear interpolation between them is not visible.
constexpr std::array<Colour, 11> kViridis = {{{68, 1, 84},
                                              {72, 36, 117},
                                              {65, 68, 135},
                                              {53, 95, 141},
                                              {42, 120, 142},
                                              {33, 145, 140},
                                              {34, 168, 132},
                                              {68, 191, 112},
                                              {122, 209, 81},
                                              {189, 223, 38},
                                              {253, 231, 37}}};
constexpr std::array<Colour, 9> kBlueWhiteRed = {{{9, 42, 92},
                                                  {33, 98, 168},
                                                  {94, 159, 212},
                                                  {178, 212, 236},
                                                  {248, 248, 248},
                                                  {248, 200, 178},
                                                  {231, 129, 105},
                                                  {187, 45, 56},
                                                  {103, 8, 32}}};

// Corners in units of the radius, sized so that all shapes look equally heavy. Each closed shape
// ends where it began; the strokes of plus and cross do not.
struct Corner {
  char pen;  // M: move, L: draw
  double x, y;
};
constexpr Corner kSquare[] = {
    {'M', -.85, -.85}, {'L', .85, -.85}, {'L', .85, .85}, {'L', -.85, .85}, {'L', -.85, -.85}};
constexpr Corner kUp[] = {{'M', 0, -1.15}, {'L', 1.1, .85}, {'L', -1.1, .85}, {'L', 0, -1.15}};
constexpr Corner kDiamond[] = {
    {'M', 0, -1.3}, {'L', 1.1, 0}, {'L', 0, 1.3}, {'L', -1.1, 0}, {'L', 0, -1.3}};
constexpr Corner kDown[] = {{'M', 0, 1.15}, {'L', 1.1, -.85}, {'L', -1.1, -.85}, {'L', 0, 1.15}};
constexpr Corner kPlus[] = {{'M', -1.2, 0}, {'L', 1.2, 0}, {'M', 0, -1.2}, {'L', 0, 1.2}};
constexpr Corner kCross[] = {{'M', -1, -1}, {'L', 1, 1}, {'M', -1, 1}, {'L', 1, -1}};
constexpr std::array<std::span<const Corner>, 7> kShapes = {
    {{}, kSquare, kUp, kDiamond, kDown, kPlus, kCross}};

uint8_t between(uint8_t a, uint8_t b, double t) {
  return static_cast<uint8_t>(std::lround(a + (b - a) * t));
}

}  // namespace

std::string text(double x, double y, Anchor anchor, std::string_view css, std::string_view words) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                     pixels(x), pixels(y), kAnchors[static_cast<int>(anchor)], css, escape(words));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view css) {
  return fmt::format("<path d=\"M{} {}L{} {}\" class=\"{}\"/>\n", pixels(x1), pixels(y1),
                     pixels(x2), pixels(y2), css);
}

std::string hover(std::string_view words) { return "<title>" + escape(words) + "</title>"; }

std::string heading(std::string_view title, std::string_view subtitle, int width, double& top) {
  constexpr double kBold = 1.12;  // semi-bold letters are wider by this factor
  std::string out;
  if (!title.empty()) {
    for (const std::string& row : wrapped(title, 15 * kBold, width - 24)) {
      out += text(12, top + 20, Anchor::kStart, "title", row);
      top += 20;
    }
    top += 4;
  }
  if (!subtitle.empty()) {
    for (const std::string& row : wrapped(subtitle, 11, width - 24)) {
      out += text(12, top + 14, Anchor::kStart, "small", row);
      top += 15;
    }
    top += 3;
  }
  if (!out.empty()) top += 6;
  return out;
}

std::string document(const Drawing& drawing, std::string_view title, bool dark) {
  return document(drawing.width, drawing.height, title, dark ? chart_dark_css() : "", drawing.body);
}

std::string document(const Drawing& wide, const Drawing& narrow, std::string_view title) {
  const int height = std::max(wide.height, narrow.height * wide.width / narrow.width);
  const auto picture = [&](const char* css, const Drawing& drawing) {
    return fmt::format(
        "<svg class=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
        "preserveAspectRatio=\"xMidYMin\">\n{}</svg>\n",
        css, wide.width, height, drawing.width, drawing.height, drawing.body);
  };
  constexpr const char* kSwitch =
      ".narrow { display: none; }\n"
      "@media (max-width: 480px) { .wide { display: none; } .narrow { display: inline; } }\n";
  return document(wide.width, height, title, std::string(chart_dark_css()) + kSwitch,
                  picture("wide", wide) + picture("narrow", narrow));
}

Look look(size_t place) {
  return {.css = fmt::format("look{}", place % kColours),
          .dashes = kDashes[place / kColours % kDashes.size()],
          .shape = static_cast<int>(place % 7)};
}

std::string point_path(int shape, double x, double y, double radius) {
  const std::span<const Corner> corners = kShapes[static_cast<size_t>(shape) % kShapes.size()];
  std::string out;
  if (corners.empty()) {  // a circle, as two half arcs
    const std::string r = pixels(radius), d = pixels(2 * radius);
    return fmt::format("M{0} {1}a{2} {2} 0 1 0 {3} 0a{2} {2} 0 1 0 -{3} 0z", pixels(x - radius),
                       pixels(y), r, d);
  }
  for (const Corner& corner : corners) {
    out += corner.pen;
    out += pixels(x + corner.x * radius) + " " + pixels(y + corner.y * radius);
  }
  return out;
}

Colour colour(Colours colours, double t) {
  const std::span<const Colour> table =
      colours == Colours::kDiverging ? std::span<const Colour>(kBlueWhiteRed) : kViridis;
  const double place = std::clamp(t, 0.0, 1.0) * static_cast<double>(table.size() - 1);
  const auto i = std::min(static_cast<size_t>(place), table.size() - 2);
  const double rest = place - static_cast<double>(i);
  return {between(table[i].red, table[i + 1].red, rest),
          between(table[i].green, table[i + 1].green, rest),
          between(table[i].blue, table[i + 1].blue, rest)};
}

}  // namespace sextant::chart
