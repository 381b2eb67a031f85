// The encodings, or parts of them, that need no trained parameters: `sextant plot` draws them,
// each with its options and figures, without libtorch: by distance (by_distance.cc), by the vectors
// that they add (by_vectors.cc), and rope with its stretches. All other methods are drawn by their
// effect on scores or on the input (method_options.h), which needs libtorch.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sextant/chart/chart.h"

namespace sextant::cli {

struct PlotOption {
  std::string name;       // without dashes
  std::string help;       // empty for a value that the command line gives in another way
  std::string otherwise;  // the default, as typed on the command line
};

// The option values of one command line, parsed as the method needs them. Errors name the option,
// the expected value and the actual value.
class PlotValues {
 public:
  PlotValues(std::string method, std::map<std::string, std::string> texts)
      : method_(std::move(method)), texts_(std::move(texts)) {}

  const std::string& method() const { return method_; }
  int64_t integer(const std::string& option, int64_t low, int64_t high) const;
  std::vector<int64_t> integers(const std::string& option, int64_t low, int64_t high) const;
  double number(const std::string& option, double low, double high) const;
  // The index of the value among the choices.
  size_t choice(const std::string& option, std::initializer_list<std::string_view> choices) const;
  const std::string& text(const std::string& option) const { return texts_.at(option); }
  // Throws Error: "plot METHOD: --OPTION: expected EXPECTED, but got VALUE".
  [[noreturn]] void refuse(const std::string& option, const std::string& expected) const;

 private:
  std::string method_;
  std::map<std::string, std::string> texts_;
};

// Numbers without a picture: written as CSV, and printed; NaN as a dash.
struct NumberTable {
  std::string title;
  std::vector<std::string> columns;  // of the numbers; the first column of the file is `name`
  std::vector<std::pair<std::string, std::vector<double>>> rows;
};

struct Figure {
  std::string name;  // the last part of the file name: "similarity"
  std::variant<chart::LineChart, chart::HeatMap, chart::PlaneChart, chart::Panels, NumberTable>
      chart;
};

// The JSON values of a method's option.
enum class OwnType {
  kNumber,
  kNumbers,  // a list of numbers
  kString,
  kStretch,  // a short form, "yarn*8", or an object as of rope_scaling
};

// An option of the method itself, as in the registry, that one of the plot's options expresses.
struct OwnOption {
  std::string name;    // "max_bias"
  std::string option;  // "max-bias"
  OwnType type = OwnType::kNumber;
  // Whether the method accepts null, which then stands for the plot's default.
  bool nullable = false;
  // All values, as (the method's in JSON, the plot's); if empty, any of the type.
  std::vector<std::pair<std::string, std::string>> values = {};
};

struct PlottedMethod {
  std::string name;  // as in the registry, or that of a stretch of rope
  std::string summary;
  std::vector<PlotOption> options;
  std::vector<Figure> (*figures)(const PlotValues& values);
  std::vector<OwnOption> own = {};
  bool registered = true;  // whether the registry has the method, so that it has scores
};

// Sorted by name.
std::span<const PlottedMethod> plotted_methods();

// The figures of a plotted method with these option values, and defaults for the others. Throws
// Error for an unknown method.
std::vector<Figure> figures_of(const std::string& method, std::map<std::string, std::string> texts);

// The reason why a method cannot be drawn; empty if it can.
std::string nothing_to_draw(std::string_view name);
// The error text for a name that is neither a plotted method nor in `others`; it lists the known
// names.
std::string not_plotted(std::string_view name, std::span<const std::string> others);

}  // namespace sextant::cli
