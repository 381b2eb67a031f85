// sextant plot METHOD: draws an encoding, and writes the numbers of the figures beside them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/chart/chart.h"
#include "sextant/cli/commands.h"
#include "sextant/cli/plot/method_options.h"
#include "sextant/cli/plot/plotted.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

// The command line of one method and where its picture goes.
struct MethodCommandLine {
  PlotRequest plot;
  std::map<std::string, const CLI::Option*> options;  // the plot's options by name
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
  for (const std::string& name : names)
    if (chart::format(name) != data) formats.push_back(chart::format(name));
  return formats;
}

template <class Chart>
std::vector<std::filesystem::path> write(const Chart& chart, const MethodCommandLine& request,
                                         const std::filesystem::path& stem) {
  constexpr bool kMatrix = std::is_same_v<Chart, chart::HeatMap>;
  return write_figure(
      chart, stem, with_data(request.formats, kMatrix ? chart::Format::kNpy : chart::Format::kCsv));
}

std::vector<std::filesystem::path> write(const NumberTable& table, const MethodCommandLine&,
                                         std::filesystem::path stem) {
  std::string text = fmt::format("name,{}\n", fmt::join(table.columns, ","));
  for (const auto& [name, numbers] : table.rows)
    text += fmt::format("\"{}\",{}\n", name, fmt::join(numbers, ","));
  stem += ".csv";
  write_file(stem, text);
  return {stem};
}

void print_numbers(const NumberTable& table) {
  std::string head;
  for (const std::string& column : table.columns) head += fmt::format("{:>12}", column);
  lab::print("{}\n  {:<20}{}\n", table.title, "", head);
  for (const auto& [name, numbers] : table.rows) {
    std::string row;
    for (const double number : numbers)
      row += fmt::format("{:>12}", std::isnan(number) ? "-" : fmt::format("{:.4f}", number));
    lab::print("  {:<20}{}\n", name, row);
  }
}

void plot(const PlottedMethod& method, MethodCommandLine& request) {
  for (const auto& [name, option] : request.options)
    if (option->count() > 0) request.plot.typed.insert(name);
  const auto [label, figures] = usage([&] {
    const ChosenPlot chosen = choose_plot(method, request.plot);
    return std::pair(chosen.label, chosen.method.figures(PlotValues(method.name, chosen.texts)));
  });
  for (const Figure& figure : figures) {
    const std::filesystem::path stem = request.folder / (label + "-" + figure.name);
    const auto paths =
        std::visit([&](const auto& chart) { return write(chart, request, stem); }, figure.chart);
    for (const std::filesystem::path& path : paths) lab::print("{}\n", path.string());
  }
  for (const Figure& figure : figures)
    if (const auto* table = std::get_if<NumberTable>(&figure.chart)) print_numbers(*table);
}

// `words` is the method's name, with options as NAME:OPTION=VALUE.
void add_method(CLI::App& plot_command, const PlottedMethod& method, const std::string& words) {
  CLI::App* command = plot_command.add_subcommand(method.name, method.summary);
  auto request = std::make_shared<MethodCommandLine>();
  request->plot.words = words;
  for (const PlotOption& option : method.options) {
    std::string& text = request->plot.texts[option.name];
    text = option.otherwise;
    if (option.help.empty()) continue;  // set by --options
    request->options[option.name] = command->add_option("--" + option.name, text, option.help)
                                        ->type_name("VALUE")
                                        ->capture_default_str();
  }
  command
      ->add_option("--options", request->plot.options,
                   "options of the method itself; also as " + method.name + ":OPTION=VALUE")
      ->type_name("JSON")
      ->capture_default_str();
  command->add_option("--out", request->folder, "folder for the files")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--as", request->formats, "pictures to write")
      ->delimiter(',')
      ->check(CLI::IsMember({"svg", "png"}))
      ->capture_default_str();
  command->callback([method, request] { plot(method, *request); });
}

void print_method(const std::string& name, const std::string& summary) {
  lab::print("  {:<16}{}\n", name, summary);
}

void list() {
  lab::print("Drawn from their formulas (options: sextant plot METHOD --help):\n");
  std::set<std::string> drawn;
  for (const PlottedMethod& method : plotted_methods()) {
    print_method(method.name, method.summary);
    drawn.insert(method.name);
  }
  lab::print("\nDrawn by their scores or by what they add to the input, before training:\n");
  const std::vector<lab::KnownMethod> others = methods_of_laboratory();
  if (others.empty()) lab::print("  all other methods, in a build with libtorch\n");
  std::string left_out;
  for (const lab::KnownMethod& method : others) {
    const std::string why = nothing_to_draw(method.name);
    if (!why.empty()) left_out += "\n" + why;
    if (why.empty() && !drawn.contains(method.name)) print_method(method.name, method.summary);
  }
  if (!left_out.empty()) lab::print_text(left_out + "\n");
  lab::print("\nA configuration's wavelengths: sextant explain CONFIG --out DIR\n");
}

// The plot of a method that was named with options, or that is no subcommand.
PlottedMethod plot_named(const std::string& name) {
  if (const std::string why = nothing_to_draw(name); !why.empty())
    throw CLI::ValidationError("plot " + why);
  const auto drawn = std::ranges::find(plotted_methods(), name, &PlottedMethod::name);
  if (drawn != plotted_methods().end()) return *drawn;
  std::vector<std::string> others;
  for (const lab::KnownMethod& method : methods_of_laboratory()) others.push_back(method.name);
  if (std::ranges::find(others, name) == others.end())
    throw CLI::ValidationError("plot " + not_plotted(name, others));
  return plot_by_scores(name);
}

// `arguments` are NAME or NAME:OPTION=VALUE, and the options of the plot.
void plot_by_name(std::vector<std::string> arguments) {
  const std::string words = arguments.empty() ? "" : arguments[0];
  const PlottedMethod method = plot_named(words.substr(0, words.find(':')));
  CLI::App app("", "plot");
  add_method(app, method, words);
  arguments[0] = method.name;
  std::ranges::reverse(arguments);  // the order that CLI11 expects
  app.parse(arguments);
}

}  // namespace

void add_plot(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plot", "Draw an encoding: vectors, similarities, biases");
  for (const PlottedMethod& method : plotted_methods()) add_method(*command, method, method.name);
  // Set after the methods are added, so that they do not inherit it.
  command->footer(
      "Any other method is drawn by what it makes of scores, or of the input, before training:\n"
      "  sextant plot METHOD [--heads 4] [--head-dim 32] [--length 64] [--direction causal|both]\n"
      "                      [--out DIR] [--as svg,png]\n\n"
      "All take the method's own options, --options JSON or METHOD:OPTION=VALUE:...; options that\n"
      "the figures above do not show are drawn by scores, too. Other stretches of rope:\n"
      "  sextant plot rope --stretch by-parts*8\n\n"
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
