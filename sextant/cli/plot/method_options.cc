#include "sextant/cli/plot/method_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/cli/plot/by_scores.h"
#include "sextant/lab/run/survey.h"

namespace sextant::cli {
namespace {

using nlohmann::json;

constexpr const char* kOptions = "options";  // of plots by scores

// A value as the plot's option spells it: the elements of a list with commas between, other values
// as in JSON.
std::string spelled(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> elements;
  for (const json& element : value) elements.push_back(spelled(element));
  return fmt::format("{}", fmt::join(elements, ","));
}

const PlotOption* find(const PlottedMethod& method, const std::string& option) {
  const auto found = std::ranges::find(method.options, option, &PlotOption::name);
  return found == method.options.end() ? nullptr : &*found;
}

// The options of "NAME:OPTION=VALUE:..." and of the JSON object together.
json own_options(const PlottedMethod& method, const PlotRequest& request) {
  json options = json::parse(request.options, nullptr, /*allow_exceptions=*/false);
  if (!options.is_object()) {
    fail(fmt::format("plot {}: --options: expected a JSON object, but got {}", method.name,
                     request.options));
  }
  const json named = json::parse(lab::request_of(request.words).options);
  for (const auto& [option, value] : named.items()) {
    if (options.contains(option)) {
      fail(fmt::format("plot {}: {}: expected it once, but got {} in --options and {} in the name",
                       method.name, option, options[option].dump(), value.dump()));
    }
    options[option] = value;
  }
  return options;
}

// Moves the options that the plot's options express to `texts`, and returns the others.
json move_expressed(const PlottedMethod& method, json own, const PlotRequest& request,
                    std::map<std::string, std::string>& texts) {
  for (const OwnOption& known : method.own) {
    const auto found = own.find(known.name);
    if (found == own.end()) continue;
    std::string text = found->is_null() ? find(method, known.option)->otherwise : spelled(*found);
    for (const auto& [other, here] : known.values) {
      if (text == other) text = here;
    }
    if (request.typed.contains(known.option)) {
      fail(fmt::format("plot {}: --{}: expected it once, but got {} and the option {} of {}",
                       method.name, known.option, texts.at(known.option), known.name,
                       found->dump()));
    }
    texts[known.option] = text;
    own.erase(found);
  }
  return own;
}

// The plot by scores, for the options `others` that `method` cannot draw.
ChosenPlot by_scores(const PlottedMethod& method, const PlotRequest& request, const json& own,
                     const json& others) {
  const std::string& first = others.begin().key();
  if (!method.registered || methods_of_laboratory().empty()) {
    std::vector<std::string> known;
    for (const OwnOption& option : method.own) known.push_back(option.name);
    fail(fmt::format("plot {}: options: expected any of {}{}, but got \"{}\"", method.name,
                     fmt::join(known, ", "),
                     method.registered ? " (others take a build with libtorch)" : "", first));
  }
  ChosenPlot chosen = {.method = plot_by_scores(method.name), .texts = {}};
  for (const PlotOption& option : chosen.method.options) {
    chosen.texts[option.name] =
        request.typed.contains(option.name) ? request.texts.at(option.name) : option.otherwise;
  }
  for (const std::string& typed : request.typed) {
    if (find(chosen.method, typed) != nullptr) continue;
    fail(
        fmt::format("plot {}: --{}: expected none beside the option {}, with which the method is "
                    "drawn by its scores, but got {}",
                    method.name, typed, first, request.texts.at(typed)));
  }
  chosen.texts[kOptions] = own.dump();
  return chosen;
}

}  // namespace

ChosenPlot choose_plot(const PlottedMethod& method, const PlotRequest& request) {
  const json own = own_options(method, request);
  ChosenPlot chosen = {.method = method, .texts = request.texts};
  if (find(method, kOptions) != nullptr) {
    chosen.texts[kOptions] = own.dump();
    return chosen;
  }
  const json others = move_expressed(method, own, request, chosen.texts);
  return others.empty() ? chosen : by_scores(method, request, own, others);
}

}  // namespace sextant::cli
