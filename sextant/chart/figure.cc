// Writes charts to files; and the data of charts, as CSV and in NumPy's format. Panels are drawn
// one above the other here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "sextant/base/error.h"
#include "sextant/chart/draw.h"
#include "sextant/chart/svg.h"
#include "sextant/chart/text.h"
#include "sextant/files/write_file.h"

namespace sextant::chart {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"svg", "png", "csv", "npy"};

template <class Chart>
Drawing on_paper(const Chart& chart) {
  Canvas canvas = {.width = chart.width};
  if constexpr (requires { chart.height; }) canvas.height = chart.height;
  return drawing_of(chart, canvas);
}

template <class Chart>
std::string content(const Chart& chart, Format format) {
  if (format == Format::kSvg) return svg(chart);
  if (format == Format::kPng) return png(chart);
  if (format == Format::kCsv) return csv(chart);
  if constexpr (std::is_same_v<Chart, HeatMap>) {
    return npy(chart);
  } else {
    fail("figure: format: expected svg, png or csv for a chart other than a heat map, but got npy");
  }
}

std::string place(const Cells& cells, int64_t i) {
  if (!cells.names.empty()) return csv_field(cells.names[static_cast<size_t>(i)]);
  return fmt::format("{}", cells.first + cells.step * static_cast<double>(i));
}

}  // namespace

std::string svg(const AnyChart& chart) {
  return std::visit([](const auto& one) { return document(on_paper(one), one.title, true); },
                    chart);
}

// A drawing for light mode: a PNG cannot follow the viewer's mode.
std::string png(const AnyChart& chart, double zoom) {
  const auto drawn = [&](const auto& one) {
    return rasterise(document(on_paper(one), one.title, false), zoom);
  };
  return std::visit(drawn, chart);
}

Format format(const std::string& name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<Format>(i);
  fail("figure: format: expected svg, png, csv or npy, but got \"" + name + "\"");
}

std::vector<std::filesystem::path> write_figure(const AnyChart& chart,
                                                const std::filesystem::path& stem,
                                                std::span<const Format> formats) {
  std::vector<std::filesystem::path> paths;
  for (const Format format : formats) {
    std::filesystem::path path = stem;
    path += ".";
    path += kNames[static_cast<size_t>(format)];
    write_file(path, std::visit([&](const auto& one) { return content(one, format); }, chart));
    paths.push_back(path);
  }
  return paths;
}

std::string csv(const LineChart& chart) {
  draw(chart, {});  // for its checks
  std::string out = "series,x,y,low,high\n";
  for (const Series& series : chart.series) {
    for (size_t i = 0; i < series.x.size(); ++i) {
      out += fmt::format("{},{},{},", csv_field(series.name), series.x[i], series.y[i]);
      out += series.low.empty() ? "," : fmt::format("{},{}", series.low[i], series.high[i]);
      out += '\n';
    }
  }
  return out;
}

std::string csv(const HeatMap& map) {
  check(map);
  std::string out = "row,column,value\n";
  size_t next = 0;
  for (int64_t row = 0; row < map.rows.count; ++row) {
    const std::string start = place(map.rows, row) + ",";
    for (int64_t column = 0; column < map.columns.count; ++column)
      out += start + place(map.columns, column) + fmt::format(",{}\n", map.values[next++]);
  }
  return out;
}

std::string csv(const PlaneChart& chart) {
  check(chart);
  std::string out = "panel,series,label,x,y,arc\n";
  for (const PlaneChart::Panel& panel : chart.panels) {
    if (panel.arc > 0)
      out +=
          fmt::format("{},{},,,,{}\n", csv_field(panel.name), csv_field(chart.arc_name), panel.arc);
    for (const PlaneChart::Series& series : panel.series) {
      for (const PlaneChart::Point& point : series.points)
        out += fmt::format("{},{},{},{},{},\n", csv_field(panel.name), csv_field(series.name),
                           csv_field(point.label), point.x, point.y);
    }
  }
  return out;
}

std::string csv(const Panels& panels) {
  std::string out, before;
  for (const auto& part : panels.parts) {
    const std::string text = std::visit([](const auto& one) { return csv(one); }, part);
    const std::string head = text.substr(0, text.find('\n') + 1);
    if (head == before) {
      out += text.substr(head.size());
    } else {
      out += (out.empty() ? "" : "\n") + text;
    }
    before = head;
  }
  return out;
}

std::string npy(const HeatMap& map) {
  check(map);
  // NEP 1: a magic word and a version, the length of the header, the header, which is a dict of
  // Python, and the elements, all little-endian.
  std::string out("\x93NUMPY\1\0", 8);
  std::string header =
      fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},{},), }}", map.rows.count,
                  map.columns.count);
  constexpr size_t kBefore = 10;                            // magic, version, length
  header.append(63 - (kBefore + header.size()) % 64, ' ');  // elements start at a multiple of 64
  header += '\n';
  out += {static_cast<char>(header.size() % 256), static_cast<char>(header.size() / 256)};
  out += header;
  return out.append(reinterpret_cast<const char*>(map.values.data()),
                    map.values.size() * sizeof(double));
}

Drawing draw(const Panels& panels, const Canvas& canvas) {
  Canvas inner = canvas;
  inner.heading = true;
  inner.square = false;
  const auto draw_part = [&](auto part) -> Drawing {  // its subtitle is its only heading
    part.title.clear();
    inner.height = part.height;
    return drawing_of(part, inner);
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

}  // namespace sextant::chart
