#include "sextant/chart/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "sextant/chart/assets.h"
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

}  // namespace sextant::chart
