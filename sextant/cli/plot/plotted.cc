#include "sextant/cli/plot/plotted.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/base/nearest.h"

namespace sextant::cli {

std::vector<PlottedMethod> distance_plots();  // by_distance.cc
std::vector<PlottedMethod> vector_plots();    // by_vectors.cc
PlottedMethod rope_plot();
PlottedMethod lesson_plot();
std::vector<PlottedMethod> stretch_plots();

std::span<const PlottedMethod> plotted_methods() {
  static const std::vector<PlottedMethod> methods = [] {
    std::vector<PlottedMethod> all = {rope_plot(), lesson_plot()};
    for (auto* const plots : {distance_plots, vector_plots, stretch_plots})
      std::ranges::move(plots(), std::back_inserter(all));
    std::ranges::sort(all, {}, &PlottedMethod::name);
    return all;
  }();
  return methods;
}

std::vector<Figure> figures_of(const std::string& method,
                               std::map<std::string, std::string> texts) {
  const auto plot = std::ranges::find(plotted_methods(), method, &PlottedMethod::name);
  if (plot == plotted_methods().end()) fail("plot " + not_plotted(method, {}));
  for (const PlotOption& option : plot->options) texts.insert({option.name, option.otherwise});
  return plot->figures(PlotValues(method, std::move(texts)));
}

std::string nothing_to_draw(std::string_view name) {
  if (name == "learned") return "learned: nothing to draw: its table is all training";
  return "";
}

std::string not_plotted(std::string_view name, std::span<const std::string> others) {
  std::set<std::string_view> names(others.begin(), others.end());
  for (const PlottedMethod& method : plotted_methods()) names.insert(method.name);
  std::erase_if(names, [](std::string_view one) { return !nothing_to_draw(one).empty(); });
  const std::vector<std::string> known(names.begin(), names.end());
  return fmt::format(
      "METHOD: expected one of {}{}, but got {}",
      name.empty() ? fmt::format("{}", fmt::join(known, ", ")) : nearest_text(name, known),
      others.empty() ? " (others take a build with libtorch)" : "",
      name.empty() ? "nothing" : name);
}

void PlotValues::refuse(const std::string& option, const std::string& expected) const {
  fail(fmt::format("plot {}: --{}: expected {}, but got {}", method_, option, expected,
                   texts_.at(option).empty() ? "nothing" : texts_.at(option)));
}

namespace {

// Parses all of `text` as a number of type T; returns false if it is none.
template <class T>
bool parse(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end;
}

// The pictures of docs/learn.md, which are those of docs/data/lesson.toml in its order. A name is
// that of the picture in docs/images/methods.
struct LessonPicture {
  int step = 0;
  std::string name, method, figure;
  std::map<std::string, std::string> options = {};
};

std::vector<LessonPicture> lesson_pictures() {
  return {{1, "none-weights", "none", "weights"},
          {2, "clock-hours", "clock", "vectors", {{"step", "60"}, {"length", "43200"}}},
          {3, "binary", "binary", "vectors"},
          {3, "sinusoidal", "sinusoidal", "vectors"},
          {4, "sinusoidal-distance", "sinusoidal", "distance"},
          {5, "sinusoidal-explained", "sinusoidal", "explained-distance"},
          {6, "shaw", "shaw", "distance"},
          {7, "t5-steps", "t5", "steps"},
          {8, "rope-shift", "rope", "shift"},
          {9, "rope-terms", "rope", "terms"},
          {9, "rope-bound", "rope", "bound"},
          {10, "pi-pair", "pi", "pair"},
          {10, "pi-neighbours", "pi", "neighbours"},
          {11, "stretches-wavelengths", "stretches", "wavelengths"},
          {11, "yarn-pairs", "yarn-8-turns", "pairs"},
          {12, "alibi-weights", "alibi", "weights"},
          {12,
           "sandwich-logarithm",
           "sandwich",
           "logarithm",
           {{"first-index", "0"}, {"length", "512"}}},
          {12, "stretches-used", "stretches", "used"}};
}

std::vector<Figure> lesson_figures(const PlotValues&) {
  std::vector<Figure> all;
  for (const LessonPicture& picture : lesson_pictures()) {
    std::vector<Figure> figures = figures_of(picture.method, picture.options);
    Figure& figure = *std::ranges::find(figures, picture.figure, &Figure::name);
    all.push_back({fmt::format("{:02}-{}", picture.step, picture.name), std::move(figure.chart)});
  }
  return all;
}

}  // namespace

int64_t PlotValues::integer(const std::string& option, int64_t low, int64_t high) const {
  int64_t value = 0;
  if (!parse(text(option), value) || value < low || value > high)
    refuse(option, fmt::format("an integer from {} to {}", low, high));
  return value;
}

std::vector<int64_t> PlotValues::integers(const std::string& option, int64_t low,
                                          int64_t high) const {
  std::vector<int64_t> values;
  std::string_view rest = text(option);
  for (bool more = true; more;) {
    const size_t end = std::min(rest.find(','), rest.size());
    int64_t value = 0;
    if (!parse(rest.substr(0, end), value) || value < low || value > high)
      refuse(option, fmt::format("integers from {} to {} with commas between", low, high));
    values.push_back(value);
    more = end < rest.size();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return values;
}

double PlotValues::number(const std::string& option, double low, double high) const {
  double value = 0;
  if (!parse(text(option), value) || !(value >= low && value <= high))
    refuse(option, fmt::format("a number from {} to {}", low, high));
  return value;
}

size_t PlotValues::choice(const std::string& option,
                          std::initializer_list<std::string_view> choices) const {
  const auto* found = std::find(choices.begin(), choices.end(), text(option));
  if (found == choices.end()) refuse(option, fmt::format("one of {}", fmt::join(choices, ", ")));
  return static_cast<size_t>(found - choices.begin());
}

PlottedMethod lesson_plot() {
  return {"lesson", "The pictures of docs/learn.md, the notes in twelve steps",
          {},       lesson_figures,
          {},       /*registered=*/false};
}

}  // namespace sextant::cli
