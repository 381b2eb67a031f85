// Panels: charts one above the other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sextant/chart/draw.h"
#include "sextant/chart/text.h"

namespace sextant::chart {

Drawing draw(const Panels& panels, const Canvas& canvas) {
  Canvas inner = canvas;
  inner.heading = true;
  inner.square = false;
  const auto draw_part = [&](auto part) -> Drawing {  // its subtitle is its only heading
    part.title.clear();
    inner.height = part.height;
    auto drawn = draw(part, inner);
    if constexpr (requires { drawn.drawing; })
      return drawn.drawing;
    else
      return drawn;
  };
  const auto draw_all = [&] {
    std::vector<Drawing> parts;
    for (const auto& part : panels.parts) parts.push_back(std::visit(draw_part, part));
    return parts;
  };
  for (const Drawing& part : draw_all()) {
    inner.left = std::max(inner.left, part.plot.left);
    inner.right = std::max(inner.right, part.width - part.plot.right());
  }
  std::string body;
  double top = 8;
  if (canvas.heading) body += heading(panels.title, panels.subtitle, canvas.width, top);
  const double start = top;
  for (const Drawing& part : draw_all()) {
    body += fmt::format("<g transform=\"translate(0 {})\">\n{}</g>\n", pixels(top), part.body);
    top += part.height;
  }
  const Box plot = {inner.left, start, canvas.width - inner.left - inner.right, top - start};
  return {canvas.width, static_cast<int>(std::ceil(top)), plot, std::move(body)};
}

std::string svg(const Panels& panels) {
  return document(draw(panels, {.width = panels.width}), panels.title, true);
}

}  // namespace sextant::chart
