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
  if constexpr (std::is_same_v<Chart, LineChart>) {
    return draw(chart, {.width = chart.width, .height = chart.height}).drawing;
  } else if constexpr (std::is_same_v<Chart, PlaneChart>) {
    return draw(chart, {.width = chart.width});
  } else {
    return draw(chart, {.width = chart.width, .height = chart.height});
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

template <class Chart>
std::vector<std::filesystem::path> write(const Chart& chart, const std::filesystem::path& stem,
                                         std::span<const Format> formats) {
  std::vector<std::filesystem::path> paths;
  for (const Format format : formats) {
    std::filesystem::path path = stem;
    path += ".";
    path += kNames[static_cast<size_t>(format)];
    write_file(path, content(chart, format));
    paths.push_back(path);
  }
  return paths;
}

}  // namespace

std::string png(const LineChart& chart, double zoom) {
  return rasterise(document(on_paper(chart), chart.title, false), zoom);
}

std::string png(const HeatMap& map, double zoom) {
  return rasterise(document(on_paper(map), map.title, false), zoom);
}

std::string png(const PlaneChart& chart, double zoom) {
  return rasterise(document(on_paper(chart), chart.title, false), zoom);
}

Format format(const std::string& name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Format>(i);
  }
  fail("figure: format: expected svg, png, csv or npy, but got \"" + name + "\"");
}

std::vector<std::filesystem::path> write_figure(const LineChart& chart,
                                                const std::filesystem::path& stem,
                                                std::span<const Format> formats) {
  return write(chart, stem, formats);
}

std::vector<std::filesystem::path> write_figure(const HeatMap& map,
                                                const std::filesystem::path& stem,
                                                std::span<const Format> formats) {
  return write(map, stem, formats);
}

std::vector<std::filesystem::path> write_figure(const PlaneChart& chart,
                                                const std::filesystem::path& stem,
                                                std::span<const Format> formats) {
  return write(chart, stem, formats);
}

}  // namespace sextant::chart
