// sextant plot METHOD: draws an encoding, and writes the numbers of the figures beside them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/chart/chart.h"
#include "sextant/cli/commands.h"
#include "sextant/cli/plot/by_scores.h"
#include "sextant/cli/plot/plotted.h"

namespace sextant::cli {
namespace {

// The command-line options of one method.
struct Request {
  std::map<std::string, std::string> texts;  // values by option
  std::filesystem::path folder = "runs/plots";
  std::vector<std::string> formats = {"svg", "png"};
};

// Option values are part of the command line, so an Error about them is reported as wrong usage.
template <class Action>
auto usage(Action action) {
  try {
    return action();
  } catch (const Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

std::vector<chart::Format> with_data(const std::vector<std::string>& names, chart::Format data) {
  std::vector<chart::Format> formats = {data};
  for (const std::string& name : names) {
    if (chart::format(name) != data) formats.push_back(chart::format(name));
  }
  return formats;
}

std::vector<std::filesystem::path> write(const chart::HeatMap& map, const Request& request,
                                         const std::filesystem::path& stem) {
  return write_figure(map, stem, with_data(request.formats, chart::Format::kNpy));
}

std::vector<std::filesystem::path> write(const chart::LineChart& line, const Request& request,
                                         const std::filesystem::path& stem) {
  return write_figure(line, stem, with_data(request.formats, chart::Format::kCsv));
}

void plot(const PlottedMethod& method, const Request& request) {
  const std::vector<Figure> figures =
      usage([&] { return method.figures(PlotValues(method.name, request.texts)); });
  for (const Figure& figure : figures) {
    const std::filesystem::path stem = request.folder / (method.name + "-" + figure.name);
    const auto paths =
        std::visit([&](const auto& chart) { return write(chart, request, stem); }, figure.chart);
    for (const std::filesystem::path& path : paths) fmt::print("{}\n", path.string());
  }
}

void add_method(CLI::App& plot_command, const PlottedMethod& method) {
  CLI::App* command = plot_command.add_subcommand(method.name, method.summary);
  auto request = std::make_shared<Request>();
  for (const PlotOption& option : method.options) {
    std::string& text = request->texts[option.name];
    text = option.otherwise;
    command->add_option("--" + option.name, text, option.help)
        ->type_name("VALUE")
        ->capture_default_str();
  }
  command->add_option("--out", request->folder, "folder for the files")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--format", request->formats, "pictures to write")
      ->delimiter(',')
      ->check(CLI::IsMember({"svg", "png"}))
      ->capture_default_str();
  command->callback([&method, request] { plot(method, *request); });
}

void print_method(const std::string& name, const std::string& summary) {
  fmt::print("  {:<16}{}\n", name, summary);
}

void list() {
  fmt::print("Drawn from their formulas (options: sextant plot METHOD --help):\n");
  std::set<std::string> drawn;
  for (const PlottedMethod& method : plotted_methods()) {
    print_method(method.name, method.summary);
    drawn.insert(method.name);
  }
  fmt::print("\nDrawn by their scores or by what they add to the input, before training:\n");
  const std::vector<lab::KnownMethod> others = methods_of_laboratory();
  if (others.empty()) fmt::print("  all other methods, in a build with libtorch\n");
  std::string left_out;
  for (const lab::KnownMethod& method : others) {
    const std::string why = nothing_to_draw(method.name);
    if (!why.empty()) left_out += "\n" + why;
    if (why.empty() && !drawn.contains(method.name)) print_method(method.name, method.summary);
  }
  if (!left_out.empty()) fmt::print("{}\n", left_out);
  fmt::print("\nA configuration's wavelengths: sextant explain CONFIG --plot DIR\n");
}

// Plots a method by its scores. `words` are its name and its options.
void plot_by_name(std::vector<std::string> words) {
  const std::string name = words.empty() ? "" : words[0];
  if (const std::string why = nothing_to_draw(name); !why.empty()) {
    throw CLI::ValidationError("plot " + why);
  }
  std::vector<std::string> others;
  for (const lab::KnownMethod& method : methods_of_laboratory()) others.push_back(method.name);
  if (std::ranges::find(others, name) == others.end()) {
    throw CLI::ValidationError("plot " + not_plotted(name, others));
  }
  CLI::App app("", "plot");
  const PlottedMethod method = plot_by_scores(name);
  add_method(app, method);
  std::ranges::reverse(words);  // the order that CLI11 expects
  app.parse(words);
}

}  // namespace

void add_plot(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plot", "Draw an encoding: vectors, similarities, biases");
  for (const PlottedMethod& method : plotted_methods()) add_method(*command, method);
  // Set after the methods are added, so that they do not inherit it.
  command->footer(
      "Any other method is drawn by what it makes of scores, or of the input, before training:\n"
      "  sextant plot METHOD [--heads 4] [--head-dim 32] [--length 64] [--direction causal|both]\n"
      "                      [--options JSON] [--out DIR] [--format svg,png]\n\n"
      "Writes PNG and SVG, and the numbers beside them as .npy and .csv.\n"
      "sextant plot METHOD --help lists the options of the methods above, and sextant plot --list\n"
      "all that can be drawn.");
  auto listed = std::make_shared<bool>(false);
  command->add_flag("--list", *listed, "List what can be drawn");
  command->require_subcommand(0, 1);
  command->allow_extras();  // other method names; the plug-in is not opened just to list them
  command->callback([command, listed] {
    if (*listed) return list();
    if (command->get_subcommands().empty()) plot_by_name(command->remaining());
  });
}

}  // namespace sextant::cli
