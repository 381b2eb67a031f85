// The stretches of rope by the names that `sextant survey` has for them: pi, ntk, yarn and so on,
// each as `plot rope --stretch` draws it; and `plot stretches`, all ways to use a trained rope on
// longer sequences side by side. PI, NTK and YaRN change the wavelengths; ReRoPE, Leaky ReRoPE,
// Self-Extend and dual chunks the positions that queries and keys use. Windows and factors are
// those of the survey's plans.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "sextant/cli/plot/rope.h"
#include "sextant/lab/plan/stretches.h"
#include "sextant/rope_config/rope_scaling.h"

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

// Rope as it is, and by PI, NTK and YaRN.
std::vector<Wavelengths> wavelengths_of(const RotaryOptions& options, int64_t trained,
                                        double factor, int64_t length) {
  const Spectrum plain = rotary(options);
  const RopeScalingContext context = {
      .base = options.base, .pairs = options.dim / 2, .original_length = trained};
  std::vector<Wavelengths> out;
  for (const std::string name : {"rope", "pi", "ntk", "yarn-8-turns"}) {
    Spectrum spectrum = plain;
    out.push_back({.name = name});
    if (name != "rope") {
      const auto scaling =
          read_scaling(lab::stretch_named(name, factor), context, "plot stretches");
      spectrum = stretched(plain, stretch_of(scaling, length));
      out.back().name += fmt::format("*{}", factor);
    }
    if (name == "ntk") out.back().name += fmt::format(": base {:.5g}", base_of(spectrum));
    for (const Spectrum::Pair& pair : spectrum.pairs)
      out.back().frequencies.push_back(static_cast<double>(pair.frequency));
  }
  return out;
}

// The relative position with which a query i and a key j <= i are rotated.
using UsedPosition = std::function<double(double i, double j)>;

std::vector<std::pair<std::string, UsedPosition>> used_positions(int64_t trained, int64_t reach,
                                                                 double factor) {
  const auto window = [&](const char* method) {
    return static_cast<double>(lab::default_window(method, trained));
  };
  const auto option = [&](const char* method, const char* name) {
    return lab::piecewise_options(method, trained, reach)[name].get<double>();
  };
  const double far = window("rerope"), leaky = window("leaky-rerope"), near = window("self-extend");
  const double slower = option("leaky-rerope", "factor"), group = option("self-extend", "group");
  const lab::ChunkSizes sizes = lab::default_chunks(trained);
  const auto size = static_cast<double>(sizes.size);
  const auto chunk = static_cast<double>(sizes.size - sizes.local);
  return {{"rope", [](double i, double j) { return i - j; }},
          {fmt::format("pi*{}", factor), [=](double i, double j) { return (i - j) / factor; }},
          {fmt::format("rerope, window {}", far),
           [=](double i, double j) { return std::min(i - j, far); }},
          {fmt::format("leaky, window {}, factor {:.3g}", leaky, slower),
           [=](double i, double j) {
             return std::min(i - j, leaky) + std::max(i - j - leaky, 0.0) / slower;
           }},
          {fmt::format("self-extend, window {}, group {}", near, group),
           [=](double i, double j) {
             if (i - j < near) return i - j;
             return std::floor(i / group) - std::floor(j / group) + near - near / group;
           }},
          {fmt::format("dual-chunk, {} of {}", chunk, size), [=](double i, double j) {
             const double apart = std::floor(i / chunk) - std::floor(j / chunk);
             const double query = apart == 0   ? std::fmod(i, chunk)
                                  : apart == 1 ? std::min(std::fmod(i, chunk) + chunk, size)
                                               : std::min(2 * chunk - 1, size);
             return query - std::fmod(j, chunk);
           }}};
}

chart::LineChart used_chart(const Positions& positions, int64_t trained, double factor) {
  const int64_t last = positions.list.back();
  const PlotSubject subject = {
      "", fmt::format("trained on {}, the query at position {}", trained, last), positions};
  const DistanceView view = {.value = {.label = "relative position used", .unit = "tokens"}};
  std::vector<chart::Series> lines;
  for (const auto& [name, used] : used_positions(trained, std::max(last + 1, trained), factor)) {
    lines.push_back(distance_series(subject, view, name, [&](int64_t distance) {
      return used(static_cast<double>(last), static_cast<double>(last - distance));
    }));
  }
  lines.push_back(distance_series(subject, view, fmt::format("last of training, {}", trained - 1),
                                  [&](int64_t) { return static_cast<double>(trained - 1); }));
  chart::LineChart chart = distance_chart(subject, view, std::move(lines));
  chart.title = "Beyond its training rope uses new positions, its extensions do not";
  chart.y.low = 0;
  chart.y.high = 1.5 * static_cast<double>(trained);
  return chart;
}

std::vector<Figure> side_by_side_figures(const PlotValues& values) {
  const double base = values.number("base", 1e-3, 1e30);
  const double factor = values.number("factor", 1, kMostFactor);
  const int64_t trained = values.integer("train-length", 4, kMostTrained);
  const int64_t dim = values.integer("dim", 2, 4096);
  if (dim % 2 != 0) values.refuse("dim", "an even number");
  const Positions positions = positions_of(values);
  chart::LineChart wavelengths = wavelengths_chart(
      wavelengths_of({.dim = dim, .base = base}, trained, factor, positions.list.back() + 1),
      trained);
  wavelengths.title = "PI shifts all wavelengths, NTK tilts them, YaRN bends them";
  wavelengths.subtitle =
      fmt::format("{} channels, base {}, factor {} of {}", dim, base, factor, trained);
  return {{"wavelengths", std::move(wavelengths)},
          {"used", used_chart(positions, trained, factor)}};
}

}  // namespace

std::vector<PlottedMethod> stretch_plots() {
  std::vector<PlottedMethod> plots;
  for (const std::string& name : lab::stretch_names()) {
    std::vector<PlotOption> options = rope_plot_options();
    if (!is_dynamic(name)) options.push_back({"factor", "factor of the stretch, at least 1", "8"});
    options.push_back({"train-length", "length that the stretch starts from", "128"});
    plots.push_back({name, summary_of(name), with_positions(std::move(options), 1024),
                     stretch_figures, rope_own_options(), /*registered=*/false});
  }
  plots.push_back({"stretches",
                   "The extensions of a trained rope side by side: wavelengths, positions used",
                   with_positions({{"dim", "head size", "64"},
                                   {"base", "longest wavelength / 2 pi", "10000"},
                                   {"factor", "of PI, NTK and YaRN, at least 1", "8"},
                                   {"train-length", "length of training", "128"}},
                                  1024),
                   side_by_side_figures,
                   {{.name = "base", .option = "base"}},
                   /*registered=*/false});
  return plots;
}

}  // namespace sextant::cli
