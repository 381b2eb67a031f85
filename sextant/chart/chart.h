// Charts as plain data, drawn as SVG, PNG and CSV.
//
// A chart describes the content and not its appearance: the same struct goes into a file
// (write_figure) and into a report (report.h). The data are checked when a chart is drawn: series
// whose x and y differ in length, a logarithmic axis with values at or below zero and the like
// throw Error. A y of NaN or infinity is a gap in its line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace sextant::chart {

enum class Scale {
  kLinear,
  kLog10,
  kLog2,  // for lengths: ticks at powers of two
};

struct Axis {
  std::string label;
  std::string unit = {};  // shown in parentheses after the label: "loss (nats per byte)"
  Scale scale = Scale::kLinear;
  // The limits of the axis, taken from the data if absent; lines are clipped to them.
  std::optional<double> low = {}, high = {};
};

struct Series {
  std::string name;
  std::vector<double> x = {}, y = {};
  std::vector<double> low = {}, high = {};  // a band around y; empty, or as long as y
  bool emphasis = false;                    // drawn thicker
};

// A labelled vertical line, for example at the training length.
struct Marker {
  double x = 0;
  std::string label = {};
};

// A line chart. Lines are labelled at their right ends. The colour, dash and point shape of a
// series follow from its index in the list, so the same list looks the same in every chart. There
// are 20 different looks.
struct LineChart {
  std::string title;
  std::string subtitle;  // one line in smaller print: the fixed settings
  Axis x, y;
  std::vector<Series> series;
  std::vector<Marker> markers;
  int width = 760, height = 440;  // pixels; a chart of many series grows taller
  std::string name = {};          // of its part of a report (report.h)
};

enum class Colours {
  kSequential,  // dark to light, for amounts
  kDiverging,   // blue, white at zero, red; the bar is symmetric about zero
};

// The cells along one side of a heat map: cell c has the value first + c * step, or a name.
struct Cells {
  int64_t count = 0;
  double first = 0, step = 1;
  std::vector<std::string> names = {};  // empty, or count of them, empty for a cell without a label
};

struct HeatMap {
  std::string title;
  std::string subtitle;
  Axis x = {}, y = {};  // columns and rows: label and unit
  Axis value;           // of the colour bar: label, unit, low and high
  Cells columns = {}, rows = {};
  std::vector<double> values = {};  // row-major, top row first; NaN, infinity: no value
  Colours colours = Colours::kSequential;
  int width = 640, height = 440;  // pixels; a square matrix is drawn square
  std::string name = {};          // of its part of a report (report.h)
};

// Points of a plane with the circle of radius 1 around the origin, in one panel or several side by
// side: a pair of channels that is rotated. The points of a series have the same look in each
// panel.
struct PlaneChart {
  struct Point {
    double x = 0, y = 0;
    std::string label = {};
  };
  struct Series {
    std::string name;
    std::vector<Point> points;
    bool vectors = false;  // lines from the origin to each point
  };
  struct Panel {
    std::string name;
    std::vector<Series> series;
    // Radians counter-clockwise from the angle arc_from, shaded inside the circle; at most 2 pi.
    double arc = 0;
    double arc_from = 0;
  };
  std::string title;
  std::string subtitle;
  std::string x, y;      // labels of the axes
  std::string arc_name;  // the meaning of the shaded arcs; empty if there are none
  std::vector<Panel> panels = {};
  int width = 760;  // pixels; panels that do not fit side by side are stacked
};

// Charts one above the other, with the same left and right borders: a heat map, and the mean of its
// columns. Each part has its subtitle above it; its title and its width are not used.
struct Panels {
  std::string title;
  std::string subtitle;
  std::vector<std::variant<LineChart, HeatMap>> parts;
  int width = 760;
};

using AnyChart = std::variant<LineChart, HeatMap, PlaneChart, Panels>;

// A standalone SVG document that follows the viewer's light or dark mode.
std::string svg(const AnyChart& chart);

// The same as PNG bytes, with `zoom` pixels per SVG unit. Throws Error if rsvg-convert (Debian:
// librsvg2-bin) is not installed.
std::string png(const AnyChart& chart, double zoom = 2);

// The data of a chart: a header line, then "series,x,y,low,high" per point, "row,column,value" per
// cell, or "panel,series,label,x,y,arc" per point of a plane, where arc is empty. An arc above 0 of
// a panel is a line of its own before the points, "panel,arc_name,,,,arc". This is enough to redraw
// the data elsewhere. Panels have the lines of their parts; a part with another header than the
// part before it follows an empty line. Numbers round-trip to the same doubles.
std::string csv(const LineChart& chart);
std::string csv(const HeatMap& map);
std::string csv(const PlaneChart& chart);
std::string csv(const Panels& panels);

// A matrix in NumPy's .npy format: float64, [rows, columns].
std::string npy(const HeatMap& map);

enum class Format { kSvg, kPng, kCsv, kNpy };

// Parses "svg", "png", "csv" or "npy".
Format format(const std::string& name);

// Writes STEM.svg, STEM.png, ... atomically (write_file.h), and returns their paths. Creates
// missing folders. Throws Error if a file cannot be written, or if a chart other than a heat map is
// requested as kNpy.
std::vector<std::filesystem::path> write_figure(const AnyChart& chart,
                                                const std::filesystem::path& stem,
                                                std::span<const Format> formats);

}  // namespace sextant::chart
