// The options of a method and those of the plot are two spellings of the same. Options that a plot
// has are moved to it; the others choose the plot by scores.
//
// Methods whose rows are places of a grid are drawn by what they add to a score at each pair of a
// vertical and a horizontal distance: their scores of one vector as query and key everywhere, minus
// those of attention without positions. Tables that start from zeros are drawn at random, since
// their form is what the picture shows.
#include "sextant/cli/plot/method_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/base/random.h"
#include "sextant/cli/plot/figures.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/plan/arms.h"

namespace sextant::cli {
namespace {

using nlohmann::json;

constexpr const char* kOptions = "options";  // of plots by scores
constexpr size_t kLongestLabel = 120;        // file systems allow 255 bytes for a whole name

// A value as the plot's option spells it: the elements of a list with commas between, other values
// as in JSON.
std::string spelled(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> elements;
  for (const json& element : value) elements.push_back(spelled(element));
  return fmt::format("{}", fmt::join(elements, ","));
}

// `words` for the name of a file.
std::string harmless(const std::string& words) {
  std::string out;
  for (const char c : words) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                      std::string_view(".,=+-_").find(c) != std::string_view::npos;
    if (kept) out += c;
    if (!kept && !out.empty() && out.back() != '_') out += '_';
  }
  if (out.ends_with('_') && !words.ends_with('_')) out.pop_back();
  return out;
}

std::string label_of(const std::string& method, const json& own) {
  std::string label = method;
  for (const auto& [option, value] : own.items())
    label += fmt::format("-{}={}", harmless(option), harmless(spelled(value)));
  if (label.size() <= kLongestLabel) return label;
  return fmt::format("{}-{:016x}", label.substr(0, kLongestLabel),
                     CounterRandom(0, own.dump()).bits(0));
}

const PlotOption* find(const PlottedMethod& method, const std::string& option) {
  const auto found = std::ranges::find(method.options, option, &PlotOption::name);
  return found == method.options.end() ? nullptr : &*found;
}

// The options of "NAME:OPTION=VALUE:..." and of the JSON object together.
json own_options(const PlottedMethod& method, const PlotRequest& request) {
  json options =
      checked_json_object(request.options, fmt::format("plot {}: --options", method.name));
  const json named = json::parse(lab::request_of(request.words, "plot").options);
  for (const auto& [option, value] : named.items()) {
    if (options.contains(option))
      fail(fmt::format("plot {}: {}: expected it once, but got {} in --options and {} in the name",
                       method.name, option, options[option].dump(), value.dump()));
    options[option] = value;
  }
  return options;
}

bool has_type(const json& value, OwnType type, const std::string& plots_default) {
  const auto is_number = [](const json& element) { return element.is_number(); };
  if (type == OwnType::kNumber) return is_number(value);
  if (type == OwnType::kNumbers) return value.is_array() && std::ranges::all_of(value, is_number);
  if (type == OwnType::kString) return value.is_string();
  // As text the plot's option accepts JSON and its default, too, and the method does not.
  return value.is_object() || (value.is_string() && value != plots_default &&
                               !json::accept(value.get_ref<const std::string&>()));
}

// By OwnType.
constexpr std::string_view kTypes[] = {"a number", "a list of numbers", "a string",
                                       "a short form as yarn*8 or an object as of rope_scaling"};

std::string expected_values(const OwnOption& option) {
  const std::string type(kTypes[static_cast<size_t>(option.type)]);
  if (option.values.empty()) return type + (option.nullable ? " or null" : "");
  std::vector<std::string> own;
  for (const auto& [value, here] : option.values) own.push_back(value);
  if (option.nullable) own.emplace_back("null");
  return fmt::format("one of {}", fmt::join(own, ", "));
}

// The value of a method's option as the plot's option spells it.
std::string text_of(const PlottedMethod& method, const OwnOption& option, const json& value) {
  const std::string& otherwise = find(method, option.option)->otherwise;
  if (value.is_null() && option.nullable) return otherwise;
  const auto given =
      std::ranges::find(option.values, value.dump(), [](const auto& pair) { return pair.first; });
  if (given != option.values.end()) return given->second;
  if (!option.values.empty() || !has_type(value, option.type, otherwise))
    fail(fmt::format("plot {}: {}: expected {}, but got {}", method.name, option.name,
                     expected_values(option), value.dump()));
  return spelled(value);
}

// Moves the options that the plot's options express to `texts`, and returns the others.
json move_expressed(const PlottedMethod& method, json own, const PlotRequest& request,
                    std::map<std::string, std::string>& texts) {
  for (const OwnOption& known : method.own) {
    const auto found = own.find(known.name);
    if (found == own.end()) continue;
    const std::string text = text_of(method, known, *found);
    if (request.typed.contains(known.option))
      fail(fmt::format("plot {}: --{}: expected it once, but got {} and the option {} of {}",
                       method.name, known.option, texts.at(known.option), known.name,
                       found->dump()));
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
  ChosenPlot chosen = {.method = plot_by_scores(method.name), .label = label_of(method.name, own)};
  for (const PlotOption& option : chosen.method.options)
    chosen.texts[option.name] =
        request.typed.contains(option.name) ? request.texts.at(option.name) : option.otherwise;
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

std::vector<Figure> figures_by_scores(const PlotValues& values) {
  const lab::EncodingRequest request = {
      .method = values.method(),
      .options = values.text("options"),
      .heads = values.integer("heads", 1, 64),
      .head_dim = values.integer("head-dim", 1, 1024),
      .length = values.integer("length", 1, 2048),
      .causal = values.choice("direction", {"causal", "both"}) == 0};
  const lab::ProbedEncoding encoding = lab::open_plugin(/*threads=*/1).probe_encoding(request);
  PlotSubject subject = {.title = request.method,
                         .settings = request.options == "{}" ? "" : request.options + "; "};
  for (int64_t n = 0; n < request.length; ++n) subject.positions.list.push_back(n);
  if (!encoding.input.empty()) {
    subject.settings += fmt::format("width {}, before training", request.heads * request.head_dim);
    return added_figures(values, subject, encoding.input);
  }
  subject.settings += fmt::format(
      "one vector as query and key everywhere, heads of {}, before training", request.head_dim);
  return score_figures(subject, encoding.scores);
}

// A method whose rows are places of a grid, or nothing.
std::optional<lab::KnownMethod> known_on_grid(const std::string& method) {
  for (const lab::KnownMethod& known : methods_of_laboratory())
    if (known.name == method && !known.grid_option.empty()) return known;
  return {};
}

// A map of what the first head adds to a score, by both distances. Two places of the grid are at
// each pair of distances, and any two such places have the same value.
std::vector<Figure> grid_figures(const PlotValues& values) {
  const lab::KnownMethod method = *known_on_grid(values.method());
  const int64_t side = values.integer("side", 2, 32);
  nlohmann::json options = nlohmann::json::parse(values.text("options"));
  if (options.contains(method.grid_option))
    fail(fmt::format("plot {}: {}: expected the sizes of the grid as --side, but got {}",
                     method.name, method.grid_option, options[method.grid_option].dump()));
  const nlohmann::json own = options;
  options[method.grid_option] = {side, side};
  lab::EncodingRequest request = {.method = values.method(),
                                  .options = options.dump(),
                                  .heads = values.integer("heads", 1, 64),
                                  .head_dim = values.integer("head-dim", 1, 1024),
                                  .length = method.rows_before_grid + side * side,
                                  .causal = false,
                                  .draws_zeros = true};
  const auto probed = [&] { return lab::open_plugin(1).probe_encoding(request); };
  const lab::ProbedEncoding all = probed();
  request.method = "none";  // with the same queries and keys
  request.options = "{}";
  const lab::ProbedEncoding alone = probed();

  chart::HeatMap map;
  map.title = fmt::format("{}: what head 1 adds to a score", method.name);
  map.subtitle =
      fmt::format("{}grid of {} x {}{}", own.empty() ? "" : own.dump() + "; ", side, side,
                  all.trains ? ", random tables, one vector as query everywhere" : "");
  map.y = {.label = "vertical distance"};
  map.x = {.label = "horizontal distance"};
  map.value = {.label = "added to the score"};
  map.rows = {.count = 2 * side - 1, .first = static_cast<double>(1 - side)};
  map.columns = map.rows;
  map.colours = chart::Colours::kDiverging;
  for (int64_t y = 1 - side; y < side; ++y) {
    for (int64_t x = 1 - side; x < side; ++x) {
      const int64_t query =
          method.rows_before_grid + std::max<int64_t>(y, 0) * side + std::max<int64_t>(x, 0);
      const int64_t key = query - y * side - x;
      const auto cell = static_cast<size_t>(query * request.length + key);
      map.values.push_back(all.scores[cell] - alone.scores[cell]);
    }
  }
  return {{"grid", std::move(map)}};
}

}  // namespace

ChosenPlot choose_plot(const PlottedMethod& method, const PlotRequest& request) {
  const json own = own_options(method, request);
  ChosenPlot chosen = {
      .method = method, .texts = request.texts, .label = label_of(method.name, own)};
  if (find(method, kOptions) != nullptr) {
    chosen.texts[kOptions] = own.dump();
    return chosen;
  }
  const json others = move_expressed(method, own, request, chosen.texts);
  return others.empty() ? chosen : by_scores(method, request, own, others);
}

std::vector<lab::KnownMethod> methods_of_laboratory() {
  try {
    return lab::open_plugin(/*threads=*/1).methods();
  } catch (const Error&) {
    return {};  // callers report the missing library
  }
}

PlottedMethod plot_by_scores(const std::string& method) {
  const PlotOption heads = {"heads", "number of heads", "4"};
  const PlotOption head_dim = {"head-dim", "head size", "32"};
  const PlotOption own = {kOptions, "", "{}"};
  if (known_on_grid(method))
    return {method,
            "By what it adds to scores, by both distances on a grid",
            {heads, head_dim, {"side", "height and width of the grid", "9"}, own},
            grid_figures};
  return {method,
          "By its scores, or by what it adds to the input",
          {heads,
           head_dim,
           {"length", "draw positions below this", "64"},
           {"direction", "causal: the past only; both: encoders", "causal"},
           {"seed", "of random W_q and W_k, for vectors that are added to the input", "1"},
           own},
          figures_by_scores};
}

}  // namespace sextant::cli
