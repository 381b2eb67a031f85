// Points lie in circles, one in each panel. Labels that would touch an earlier one are left out.
#include "sextant/chart/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sextant/base/error.h"
#include "sextant/base/hypot.h"
#include "sextant/chart/text.h"

namespace sextant::chart {
namespace {

constexpr double kFarthest = 1.25;  // of a coordinate; farther points would leave their panel
constexpr double kPanelWidth = 250, kMostRadius = 150, kWordsSize = 11, kLegendRow = 17;
constexpr double kArcFrom = 0.80, kArcTo = 0.92;  // radii of the shaded arc

struct Circle {
  double x = 0, y = 0, radius = 0;
  double place_x(double value) const { return x + radius * value; }
  double place_y(double value) const { return y - radius * value; }
  // "X Y" of the point at this radius and angle.
  std::string point(double scale, double angle) const {
    return pixels(place_x(scale * std::cos(angle))) + " " +
           pixels(place_y(scale * std::sin(angle)));
  }
};

std::string in_group(size_t series, const std::string& content) {
  return fmt::format("<g class=\"series {}\">\n{}</g>\n", look(series).css, content);
}

// A sector of the ring inside the circle, `arc` from the angle `start`, in two halves, because an
// SVG arc cannot be a whole circle.
std::string arc_of(const Circle& circle, double start, double arc) {
  std::string out;
  for (const double from : {start, start + arc / 2}) {
    const double to = from + arc / 2;
    out += fmt::format("<path class=\"band\" d=\"M{}A{} {} 0 0 0 {}L{}A{} {} 0 0 1 {}z\"/>\n",
                       circle.point(kArcTo, from), pixels(kArcTo * circle.radius),
                       pixels(kArcTo * circle.radius), circle.point(kArcTo, to),
                       circle.point(kArcFrom, to), pixels(kArcFrom * circle.radius),
                       pixels(kArcFrom * circle.radius), circle.point(kArcFrom, from));
  }
  return out;
}

// The labels of points, each outside the circle in the direction of its point; those that would
// touch an earlier one are left out.
class Labels {
 public:
  explicit Labels(const Circle& circle) : circle_(circle) {}

  std::string add(const PlaneChart::Point& point) {
    const double length = hypot(point.x, point.y);
    if (point.label.empty() || length == 0) return "";
    const double width = text_width(point.label, kWordsSize);
    const double away = circle_.radius * length + 9;
    const double x = circle_.x + (away + width / 2) * point.x / length;
    const double y = circle_.y - (away + kWordsSize / 2) * point.y / length;
    const Box box = {x - width / 2 - 2, y - 8, width + 4, 16};
    const auto touches = [&](const Box& other) {
      return box.left < other.right() && other.left < box.right() && box.top < other.bottom() &&
             other.top < box.bottom();
    };
    if (std::ranges::any_of(taken_, touches)) return "";
    taken_.push_back(box);
    return text(x, y + 4, Anchor::kMiddle, "small", point.label);
  }

 private:
  const Circle& circle_;
  std::vector<Box> taken_;
};

std::string points_of(const PlaneChart::Series& series, size_t place, const Circle& circle,
                      bool hovers) {
  std::string out;
  for (const PlaneChart::Point& point : series.points) {
    const std::string words =
        fmt::format("{} ({}, {})", point.label, pretty(point.x), pretty(point.y));
    out += fmt::format(
        "<path class=\"point\" d=\"{}\">{}</path>\n",
        point_path(look(place).shape, circle.place_x(point.x), circle.place_y(point.y), 3.2),
        hovers ? hover(words) : "");
    if (!series.vectors) continue;
    out += line(circle.x, circle.y, circle.place_x(point.x), circle.place_y(point.y), "line");
  }
  return in_group(place, out);
}

// Later series lie below earlier ones.
std::string panel_body(const PlaneChart& chart, const PlaneChart::Panel& panel,
                       const Circle& circle, bool hovers) {
  const double reach = 1.12 * circle.radius;
  std::string out = line(circle.x - reach, circle.y, circle.x + reach, circle.y, "grid") +
                    line(circle.x, circle.y - reach, circle.x, circle.y + reach, "grid") +
                    fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"edge\"/>\n",
                                pixels(circle.x), pixels(circle.y), pixels(circle.radius));
  out += text(circle.x - circle.radius - 34, circle.y - circle.radius - 38, Anchor::kStart, "",
              shortened(panel.name, 12, 2 * circle.radius + 68));
  if (panel.arc > 0) out += in_group(0, arc_of(circle, panel.arc_from, panel.arc));
  for (size_t n = panel.series.size(); n-- > 0;)
    out += points_of(panel.series[n], n, circle, hovers);
  if (!panel.series.empty() && !panel.series[0].points.empty() && !panel.series[0].vectors) {
    const PlaneChart::Point& first = panel.series[0].points[0];
    out += in_group(
        0, line(circle.x, circle.y, circle.place_x(first.x), circle.place_y(first.y), "line thin"));
  }
  Labels labels(circle);
  for (const PlaneChart::Series& series : panel.series) {
    for (const PlaneChart::Point& point : series.points) out += labels.add(point);
  }
  const std::string axes = chart.x + " to the right, " + chart.y + " up";
  return out + text(circle.x, circle.y + circle.radius + 40, Anchor::kMiddle, "small",
                    shortened(axes, kWordsSize, 2 * circle.radius + 68));
}

// Names of the series and of the arc, one below the other.
std::string legend(const PlaneChart& chart, double& top, int width) {
  std::string out;
  const auto add = [&](const std::string& mark, const std::string& words) {
    out += mark +
           text(34, top + 4, Anchor::kStart, "small", shortened(words, kWordsSize, width - 40.0));
    top += kLegendRow;
  };
  const auto& series = chart.panels[0].series;
  for (size_t n = 0; n < series.size(); ++n)
    add(in_group(n, fmt::format("<path class=\"point\" d=\"{}\"/>\n",
                                point_path(look(n).shape, 22, top, 3.2))),
        series[n].name);
  if (!chart.arc_name.empty())
    add(in_group(0, fmt::format("<rect class=\"band\" x=\"14\" y=\"{}\" width=\"16\" "
                                "height=\"9\"/>\n",
                                pixels(top - 4.5))),
        chart.arc_name);
  return out;
}

}  // namespace

void check(const PlaneChart& chart) {
  for (const PlaneChart::Panel& panel : chart.panels) {
    if (!(panel.arc >= 0 && panel.arc <= 2 * std::numbers::pi))
      fail(fmt::format("plane chart: {}: arc: expected radians from 0 to 2 pi, but got {}",
                       panel.name, panel.arc));
    for (const PlaneChart::Series& series : panel.series) {
      for (const PlaneChart::Point& point : series.points) {
        if (std::abs(point.x) <= kFarthest && std::abs(point.y) <= kFarthest) continue;
        fail(fmt::format(
            "plane chart: {}: {}: expected coordinates from -{} to {}, but got {} and {}",
            panel.name, series.name, kFarthest, kFarthest, point.x, point.y));
      }
    }
  }
}

Drawing draw(const PlaneChart& chart, const Canvas& canvas) {
  check(chart);
  std::string body;
  double top = 8;
  if (canvas.heading) body += heading(chart.title, chart.subtitle, canvas.width, top);
  const double start = top;
  const int panels = std::max(1, static_cast<int>(chart.panels.size()));
  const int columns = std::clamp(static_cast<int>(canvas.width / kPanelWidth), 1, panels);
  const double room = static_cast<double>(canvas.width) / columns;
  const double radius = std::clamp(room / 2 - 46, 20.0, kMostRadius);
  const double height = 2 * radius + 98;
  for (int n = 0; n < static_cast<int>(chart.panels.size()); ++n) {
    const int row = n / columns;
    const Circle circle = {
        .x = room * (n % columns + 0.5), .y = top + height * row + radius + 50, .radius = radius};
    body += panel_body(chart, chart.panels[static_cast<size_t>(n)], circle, canvas.hover);
  }
  const int rows = (panels + columns - 1) / columns;
  top += height * rows + 12;
  const Box plot = {0, start, static_cast<double>(canvas.width), top - start};
  if (!chart.panels.empty()) body += legend(chart, top, canvas.width);
  return {canvas.width, static_cast<int>(std::ceil(top)), plot, std::move(body)};
}

}  // namespace sextant::chart
