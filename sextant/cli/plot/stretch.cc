// The stretches of rope by the names that `sextant survey` has for them: pi, ntk, yarn and so on,
// each as `plot rope --stretch` draws it.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sextant/cli/plot/rope.h"
#include "sextant/lab/plan/stretches.h"

namespace sextant::cli {
namespace {

constexpr double kMostFactor = 1e6;
constexpr int64_t kMostTrained = int64_t{1} << 40;

bool is_dynamic(const std::string& name) { return name.starts_with("dynamic-"); }

std::vector<Figure> stretch_figures(const PlotValues& values) {
  const std::string& name = values.method();
  const bool dynamic = is_dynamic(name);
  const double factor = dynamic ? 1 : values.number("factor", 1, kMostFactor);
  const PlottedStretch named = {.name = dynamic ? name : fmt::format("{}*{}", name, factor),
                                .where = "plot " + name,
                                .trained = values.integer("train-length", 1, kMostTrained)};
  return rope_figures(values, named, lab::stretch_named(name, factor));
}

std::string summary_of(const std::string& name) {
  static const std::map<std::string, std::string> summaries = {
      {"pi", "rope with interpolated positions: PI (Chen et al. 2023)"},
      {"ntk", "rope with another base: NTK-aware (bloc97 2023)"},
      {"ntk-mixed", "rope between PI and NTK (Su 2023)"},
      {"yarn", "rope by YaRN, ramp of the authors' code (Peng et al. 2023)"},
      {"yarn-paper", "rope by YaRN, ramp of the paper (Peng et al. 2023)"},
      {"yarn-8-turns", "rope by YaRN, pairs of 8 turns and more kept"},
      {"dynamic-pi", "PI by the length of the sequence (jquesnelle 2023)"},
      {"dynamic-ntk", "NTK by the length of the sequence (Su 2024)"},
      {"dynamic-yarn", "YaRN by the length of the sequence (jquesnelle 2023)"}};
  const auto found = summaries.find(name);
  return found == summaries.end() ? "a stretch of rope" : found->second;
}

}  // namespace

std::vector<PlottedMethod> stretch_plots() {
  std::vector<PlottedMethod> plots;
  for (const std::string& name : lab::stretch_names()) {
    std::vector<PlotOption> options = rope_plot_options();
    if (!is_dynamic(name)) {
      options.push_back({"factor", "factor of the stretch, at least 1", "8"});
    }
    options.push_back({"train-length", "length that the stretch starts from", "128"});
    plots.push_back({name, summary_of(name), with_positions(std::move(options), 1024),
                     stretch_figures, rope_own_options(), /*registered=*/false});
  }
  return plots;
}

}  // namespace sextant::cli
