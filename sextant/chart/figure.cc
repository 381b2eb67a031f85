// Writes charts to files.
#include <array>
#include <string_view>
#include <type_traits>

#include "sextant/base/error.h"
#include "sextant/chart/chart.h"
#include "sextant/chart/heat_map.h"
#include "sextant/chart/line_chart.h"
#include "sextant/chart/plane_chart.h"
#include "sextant/chart/raster.h"
#include "sextant/chart/svg.h"
#include "sextant/files/write_file.h"

namespace sextant::chart {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"svg", "png", "csv", "npy"};

// A drawing for light mode: a PNG cannot follow the viewer's mode.
template <class Chart>
Drawing on_paper(const Chart& chart) {
  Canvas canvas = {.width = chart.width};
  if constexpr (requires { chart.height; }) canvas.height = chart.height;
  if constexpr (std::is_same_v<Chart, LineChart>) {
    return draw(chart, canvas).drawing;
  } else {
    return draw(chart, canvas);
  }
}

template <class Chart>
std::string content(const Chart& chart, Format format) {
  switch (format) {
    case Format::kSvg:
      return svg(chart);
    case Format::kPng:
      return png(chart);
    case Format::kCsv:
      return csv(chart);
    case Format::kNpy:
      break;
  }
  if constexpr (std::is_same_v<Chart, HeatMap>) {
    return npy(chart);
  } else {
    fail("figure: format: expected svg, png or csv for a chart other than a heat map, but got npy");
  }
}

}  // namespace

std::string png(const AnyChart& chart, double zoom) {
  const auto drawn = [&](const auto& one) {
    return rasterise(document(on_paper(one), one.title, false), zoom);
  };
  return std::visit(drawn, chart);
}

Format format(const std::string& name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Format>(i);
  }
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

}  // namespace sextant::chart
