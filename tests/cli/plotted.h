// Figures of `sextant plot` for tests.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/cli/plot/figures.h"
#include "sextant/cli/plot/plotted.h"

namespace sextant::cli {

// The figures of a method with these options, and defaults for the others.
inline std::vector<Figure> figures(const std::string& name,
                                   const std::map<std::string, std::string>& texts) {
  return figures_of(name, texts);
}

template <class Chart>
Chart figure_of(const std::vector<Figure>& all, const std::string& name) {
  for (const Figure& figure : all) {
    if (figure.name == name) return std::get<Chart>(figure.chart);
  }
  throw Error("no figure " + name);
}

inline chart::HeatMap map_of(const std::vector<Figure>& all, const std::string& name) {
  return figure_of<chart::HeatMap>(all, name);
}

inline chart::LineChart line_of(const std::vector<Figure>& all) {
  return figure_of<chart::LineChart>(all, "distance");
}

inline std::string complaint_about(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

// The SVG of a figure; empty for a table of numbers.
inline std::string svg_of(const Figure& figure) {
  const auto draw = [](const auto& chart) {
    if constexpr (requires { svg(chart); }) return svg(chart);
    return std::string();
  };
  return std::visit(draw, figure.chart);
}

}  // namespace sextant::cli
