// What `sextant plot` can draw by itself: a list of encodings without trained parameters, each with
// its options and its figures. To add one, write a file beside rope.cc and name it in plotted.cc.
// All others are drawn by what they do to scores or to the input (plot_any.cc), which takes
// libtorch.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sextant/chart/chart.h"

namespace sextant::cli {

struct PlotOption {
  std::string name;  // without its dashes
  std::string help;
  std::string otherwise;  // the default, as a user would type it
};

// The options of one command line, read as what the method takes them for. Errors name the option,
// what it takes and what it got.
class PlotValues {
 public:
  PlotValues(std::string method, std::map<std::string, std::string> texts)
      : method_(std::move(method)), texts_(std::move(texts)) {}

  const std::string& method() const { return method_; }
  int64_t integer(const std::string& option, int64_t low, int64_t high) const;
  std::vector<int64_t> integers(const std::string& option, int64_t low, int64_t high) const;
  double number(const std::string& option, double low, double high) const;
  // The place of the value among the choices.
  size_t choice(const std::string& option, std::initializer_list<std::string_view> choices) const;
  const std::string& text(const std::string& option) const { return texts_.at(option); }

 private:
  [[noreturn]] void refuse(const std::string& option, const std::string& expected) const;

  std::string method_;
  std::map<std::string, std::string> texts_;
};

struct Figure {
  std::string name;  // the last part of its file names: "similarity"
  std::variant<chart::LineChart, chart::HeatMap> chart;
};

struct PlottedMethod {
  std::string name;  // as in the list of methods
  std::string summary;
  std::vector<PlotOption> options;
  std::vector<Figure> (*figures)(const PlotValues& values);
};

// Sorted by name.
std::span<const PlottedMethod> plotted_methods();

// Why there is nothing to draw of a method; empty if there is.
std::string nothing_to_draw(std::string_view name);
// What to say when `name` is none of them, nor of `others`: which there are.
std::string not_plotted(std::string_view name, std::span<const std::string> others);

}  // namespace sextant::cli
