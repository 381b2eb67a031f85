// The pictures of docs/learn.md, which are those of docs/data/lesson.toml in its order. A name is
// that of the picture in docs/images/methods.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sextant/cli/plot/plotted.h"

namespace sextant::cli {
namespace {

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

PlottedMethod lesson_plot() {
  return {"lesson", "The pictures of docs/learn.md, the notes in twelve steps",
          {},       lesson_figures,
          {},       /*registered=*/false};
}

}  // namespace sextant::cli
