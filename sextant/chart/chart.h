// Charts as plain data, drawn as SVG, PNG and CSV.
//
// A chart is what a person should see and nothing about how: the same struct goes into a file
// (write_figure) and into a report (report.h). Everything here is checked when it is drawn: series
// whose x and y differ in length, a logarithmic axis with values at or below zero and the like
// throw Error. A y of NaN or infinity is a gap in its line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sextant::chart {

enum class Scale {
  kLinear,
  kLog10,
  kLog2,  // for lengths: ticks at powers of two
};

struct Axis {
  std::string label;
  std::string unit = {};  // shown in brackets after the label: "loss (nats per byte)"
  Scale scale = Scale::kLinear;
  // What the data say where absent; lines are clipped to them.
  std::optional<double> low = {}, high = {};
};

struct Series {
  std::string name;
  std::vector<double> x = {}, y = {};
  std::vector<double> low = {}, high = {};  // a band around y; empty, or as long as y
  bool emphasis = false;                    // drawn thicker
};

// A vertical line with a name: the training length.
struct Marker {
  double x = 0;
  std::string label = {};
};

// Lines are named at their right ends; colour, dash and point shape of a series follow from its
// place in the list, so the same list gives the same looks in every chart. 20 looks differ.
struct LineChart {
  std::string title;
  std::string subtitle;  // one line of smaller print: what was held fixed
  Axis x, y;
  std::vector<Series> series;
  std::vector<Marker> markers;
  int width = 760, height = 440;  // pixels; a chart of many series grows taller
};

enum class Colours {
  kSequential,  // dark to light, for amounts
  kDiverging,   // blue, white at zero, red; the bar is symmetric about zero
};

// What the cells of one side of a heat map are: cell c stands at first + c * step, or has a name.
struct Cells {
  int64_t count = 0;
  double first = 0, step = 1;
  std::vector<std::string> names = {};  // empty, or count of them
};

struct HeatMap {
  std::string title;
  std::string subtitle;
  Axis x, y;   // columns and rows: label and unit
  Axis value;  // of the colour bar: label, unit, low and high
  Cells columns, rows;
  std::vector<double> values;  // row by row, the top row first; NaN, infinity: no value
  Colours colours = Colours::kSequential;
  int width = 640, height = 440;  // pixels; a square matrix is drawn square
};

// Standalone SVG documents that follow their reader's light or dark mode.
std::string svg(const LineChart& chart);
std::string svg(const HeatMap& map);

// The same pictures as PNG bytes, `zoom` pixels to a unit of the SVG. Throws Error if rsvg-convert
// (Debian: librsvg2-bin) is not installed.
std::string png(const LineChart& chart, double zoom = 2);
std::string png(const HeatMap& map, double zoom = 2);

// The numbers of a chart: a header line, then "series,x,y,low,high" by point, or "row,column,value"
// by cell. Enough to draw it again elsewhere. Numbers read back to the same doubles.
std::string csv(const LineChart& chart);
std::string csv(const HeatMap& map);

// A matrix in numpy's format: float64, [rows, columns].
std::string npy(const HeatMap& map);

enum class Format { kSvg, kPng, kCsv, kNpy };

// Reads "svg", "png", "csv", "npy".
Format format(const std::string& name);

// Writes STEM.svg, STEM.png, ... each whole or not at all, and returns their paths. Folders are
// made. Throws Error if a file cannot be written, or a line chart is asked for as kNpy.
std::vector<std::filesystem::path> write_figure(const LineChart& chart,
                                                const std::filesystem::path& stem,
                                                std::span<const Format> formats);
std::vector<std::filesystem::path> write_figure(const HeatMap& map,
                                                const std::filesystem::path& stem,
                                                std::span<const Format> formats);

}  // namespace sextant::chart
