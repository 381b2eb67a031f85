// sextant explain: the explanation as text, for users without knowledge of RoPE variants.
//
// The table of layer groups, and line wrapping.
//
// sextant explain --out: the wavelength of each pair before and after the stretch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "sextant/cli/explain/subject.h"
#include "sextant/cli/plot/figures.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

// The number of channel pairs with a frequency other than 0.
// In p-RoPE some pairs have frequency 0.
int64_t moving_pairs(const Explained& numbers) {
  return std::ranges::count_if(numbers.pairs,
                               [](const PairExplained& pair) { return pair.stretched != 0; });
}

std::string fate(const PairExplained& pair) {
  if (pair.stretched == 0) return "not rotated";
  if (std::isnan(pair.kept) || pair.kept > 0.9999) return "kept";
  if (pair.kept < 0.0001) return "interpolated";
  return fmt::format("{:.0f}% kept", 100 * pair.kept);
}

std::string leaving(const PairExplained& pair) {
  if (pair.stretched == 0) return "-";
  return pair.leaves == 0 ? "never" : fmt::format("{}", pair.leaves);
}

std::string value(const nlohmann::json& x) {
  if (x.is_number_float()) return number(x.get<double>());
  if (!x.is_array() || x.size() <= 4) return x.dump();
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  return fmt::format("({} numbers from {} to {})", x.size(), number(low->get<double>()),
                     number(high->get<double>()));
}

void print_parameters(const RopeConfig& config) {
  std::string line;
  const nlohmann::json parameters = parameters_of(config);
  for (const auto& item : parameters.items())
    line += (line.empty() ? "" : ", ") + item.key() + " " + value(item.value());
  if (!line.empty()) lab::print("parameters    {}\n", line);
}

void print_axes(const RopeScaling& scaling) {
  constexpr const char* kAxes[] = {"time", "height", "width", "a fourth axis"};
  std::string line;
  for (size_t a = 0; a < scaling.sections.size(); ++a)
    line += fmt::format("{}{} follow {}", line.empty() ? "" : ", ", scaling.sections[a],
                        kAxes[std::min<size_t>(a, 3)]);
  if (line.empty()) return;
  lab::print("axes          of the pairs {}{}\n", line,
             scaling.plane_first            ? ", height and width in turn, then time"
             : scaling.interleaved_sections ? ", in turn"
                                            : ", one block after the other");
}

// Prints how far back queries of these layers attend.
void print_layers(const RopeConfig& config, const Explained& n) {
  const std::string where = config.bounded_in.empty() ? "" : " in " + config.bounded_in;
  if (config.window > 0 && config.both_sides) {
    lab::print("window        {} positions to each side{}\n", config.window - 1, where);
  } else if (config.window > 0) {
    lab::print("window        {} positions{}, the query's own included\n", config.window, where);
  }
  if (config.chunk > 0)
    lab::print("chunks        of {} positions{}: a query sees its own\n", config.chunk, where);
  if (n.reach > 0) lab::print("              in these layers no distance is beyond {}\n", n.reach);
  for (const std::string& note : config.notes) print_wrapped("layers        " + note);
}

void print_queries(const RopeConfig& config) {
  const std::string law = query_law_of(config);
  if (law.empty()) return;
  const bool words = !config.query_law.empty();
  print_wrapped("queries       " + (words ? law : "times " + law + " at position i"));
}

void print_head(const Subject& subject) {
  const auto& [config, n] = subject;
  const Named named = name_of(config.scaling);
  lab::print("method        {}{}{}\n", named.name, named.source.empty() ? "" : ", ", named.source);
  if (!named.meaning.empty()) lab::print("              {}\n", named.meaning);
  print_parameters(config);
  print_axes(config.scaling);
  if (n.factor != 1) lab::print("stretch       {} times\n", number(n.factor));
  if (n.trained > 0) lab::print("trained on    {} positions\n", n.trained);
  if (const auto* stretch = std::get_if<Stretch>(&config.scaling.stretch);
      config.trained_stretched && n.trained > 0)
    lab::print("              (max_position_embeddings, with the stretch)\n");
  else if (stretch && std::holds_alternative<Linear>(*stretch) && n.factor != 1 && n.trained > 0 &&
           config.scaling.original_length == 0)
    lab::print(
        "              (max_position_embeddings; this type does not say the original length, and\n"
        "              some models, Gemma 3 among them, have the stretched one there)\n");
  if (n.target > 0) lab::print("read up to    {} positions\n", n.target);
  const std::string pairing = pairing_of(config);
  const int64_t moving = moving_pairs(n), still = std::ssize(n.pairs) - moving;
  lab::print("frequencies   {} pairs of {} channels rotate{}, base {}{}\n", moving, config.head_dim,
             still == 0 ? "" : fmt::format(" ({} more have frequency 0)", still),
             number(config.base),
             pairing == "interleaved" ? "; interleaved: channel 2f pairs with 2f + 1"
             : pairing == "half-split"
                 ? fmt::format("; half-split: channel f pairs with f + {}", config.rotary_dim / 2)
                 : "; which channels pair is not said");
  if (n.gain != 1)
    lab::print("attention     queries and keys times {}, so scores of rotated channels times {}\n",
               number(n.gain), number(n.gain * n.gain));
  if (config.scaling.score_factor != 1)
    lab::print("              and all scores times {}\n", number(config.scaling.score_factor));
  lab::print("softmax       scale {}, against {} of plain attention with {} channels\n",
             number(n.rotated_scale), number(1 / std::sqrt(static_cast<double>(config.head_dim))),
             config.head_dim);
  print_queries(config);
  print_layers(config, n);
}

void print_pairs(const Subject& subject, bool all) {
  constexpr size_t kFewRows = 12;
  const std::vector<PairExplained>& pairs = subject.numbers.pairs;
  lab::print("\n{:>5} {:>12} {:>14} {:>14} {:>14}  {}\n", "pair", "frequency", "wavelength",
             "stretched", "new from", "what is done");
  const size_t every = all ? 1 : (pairs.size() + kFewRows - 1) / kFewRows;
  for (size_t f = 0; f < pairs.size(); ++f) {
    if (f % every != 0 && f + 1 != pairs.size()) continue;
    const auto wave = [](double frequency) {
      return frequency == 0 ? std::string("-")
                            : fmt::format("{:.1f}", 6.283185307179586 / frequency);
    };
    lab::print("{:>5} {:>12.4g} {:>14} {:>14} {:>14}  {}\n", f, pairs[f].frequency,
               wave(pairs[f].frequency), wave(pairs[f].stretched), leaving(pairs[f]),
               fate(pairs[f]));
  }
}

void print_legend() {
  lab::print(
      "\nA pair of channels completes one rotation in a wavelength of positions. From the "
      "distance\n"
      "\"new from\" on its angle is one that training never showed; a pair that completed a "
      "rotation\n"
      "in training has no such distance.\n");
}

void print_angles(const Explained& n) {
  if (n.trained == 0 || n.target == 0) return;
  const int64_t seen = n.reach > 0 ? std::min(n.target, n.reach + 1) : n.target;
  if (n.first_leaving == 0 || n.first_leaving >= seen) {
    lab::print("Up to {} positions no pair leaves the angles that training showed.\n", n.target);
    return;
  }
  // L tokens have distances up to L - 1, which the factor stretches to factor * (L - 1). Up to
  // `factor` distances at the very end of the stretched length therefore lie beyond.
  if (static_cast<double>(n.first_leaving) + n.factor >= static_cast<double>(seen)) {
    const int64_t beyond = seen - n.first_leaving;
    const std::string last =
        beyond == 1 ? "last distance lies" : fmt::format("last {} distances lie", beyond);
    const auto made_for = std::llround(static_cast<double>(n.trained) * n.factor);
    print_wrapped(fmt::format("Up to distance {} no pair leaves the angles that training showed; ",
                              n.first_leaving - 1) +
                  (n.factor > 1
                       ? fmt::format("{} positions are what the stretch was made for, and their {}",
                                     made_for, last)
                       : "the " + last) +
                  " just beyond.");
    return;
  }
  print_wrapped(fmt::format(
      "From distance {} on some pair is at angles that training never showed: unless the model "
      "was trained again with this configuration, expect trouble between there and {}.",
      n.first_leaving, seen));
}

void print_hazards(const Subject& subject) {
  const Explained& n = subject.numbers;
  lab::print("\n");
  print_angles(n);
  if (n.target > 0)
    print_wrapped(fmt::format(
        "With angles computed in float32, as most engines do, a cosine at position {} is wrong by "
        "up to {:.2g}; with positions or frequencies in bfloat16 it is meaningless there.",
        n.target, n.float32_error));
}

void print_without_rotation(const Subject& subject) {
  const RopeConfig& config = subject.config;
  const bool none = config.instead.empty() || config.instead == "none";
  print_wrapped(
      fmt::format("rotation      none: queries and keys are not rotated (no RoPE); {}",
                  none ? "these layers know no positions (NoPE)"
                       : fmt::format("the positions of this model are: {}", config.instead)));
  if (config.head_dim > 0 && subject.numbers.scale > 0)
    lab::print("softmax       scale {}\n", number(subject.numbers.scale));
  print_queries(config);
  print_layers(config, subject.numbers);
}

constexpr size_t kWidestLaw = 40;
using Line = std::vector<std::string>;

std::string layers_of(const RopeConfig& config) {
  const std::string numbers = layer_list(config.layer_numbers);
  if (config.layers.empty()) return numbers.empty() ? "all" : numbers;
  return shortened(config.layers, 40) + (numbers.empty() ? "" : ": " + numbers);
}

Line line_of(const Subject& subject) {
  const RopeConfig& config = subject.config;
  const bool rotates = config.rotates;
  const std::string law = query_law_of(config);
  return {layers_of(config),
          rotates_of(config),
          rotates ? fmt::format("{} of {}", moving_pairs(subject.numbers), config.head_dim) : "-",
          rotates ? number(config.base) : "-",
          stretch_of_group(config, subject.numbers),
          window_of(config),
          law.empty()               ? "-"
          : law.size() > kWidestLaw ? "yes, see below"
                                    : law};
}

}  // namespace

void print(const Subject& subject, bool all, bool legend) {
  const RopeConfig& config = subject.config;
  const std::string layers = shortened(config.layers, 60);
  const std::string numbers = layer_list(config.layer_numbers);
  if (!layers.empty() || !numbers.empty())
    lab::print("\n== layers{}{} ==\n", layers.empty() ? "" : ": " + layers,
               numbers.empty() ? "" : " " + numbers);
  if (!config.rotates) {
    print_without_rotation(subject);
  } else {
    print_head(subject);
    print_pairs(subject, all);
    if (legend) print_legend();
    print_hazards(subject);
  }
  for (const std::string& warning : config.scaling.warnings) print_wrapped("warning: " + warning);
}

std::string window_of(const RopeConfig& config) {
  if (config.window > 0 && config.both_sides) return fmt::format("{} a side", config.window - 1);
  if (config.window > 0) return std::to_string(config.window);
  if (config.chunk > 0) return fmt::format("chunks of {}", config.chunk);
  if (config.dual_chunk > 0) return fmt::format("dual chunks of {}", config.dual_chunk);
  return "-";
}

std::string rotates_of(const RopeConfig& config) {
  if (!config.rotates) {
    const bool none = config.instead.empty() || config.instead == "none";
    return fmt::format("no ({})", none ? "NoPE" : shortened(config.instead, 40));
  }
  const std::string pairing = pairing_of(config);
  return pairing.empty() ? "yes" : pairing;
}

std::string stretch_of_group(const RopeConfig& config, const Explained& numbers) {
  const bool plain = config.scaling.type == "default" && config.scaling.sections.empty();
  if (!config.rotates || plain) return "-";
  const std::string name = name_of(config.scaling).name;
  return numbers.factor == 1 ? name : fmt::format("{} x {}", name, number(numbers.factor));
}

std::string shortened(const std::string& name, size_t most) {
  const std::string text = printable(name);
  return text.size() <= most ? text : printable(text.substr(0, most)) + "...";
}

std::string number(double x) { return fmt::format("{:.6g}", x); }

std::vector<std::string> wrapped(const std::string& text) {
  constexpr size_t kWidth = 90;
  // The line begins with a label and spaces; further lines are indented to the text after them.
  const size_t label = text.find("  ");
  const size_t start = label == std::string::npos || label > 14
                           ? 0
                           : std::min(text.find_first_not_of(' ', label), text.size());
  std::istringstream words(text.substr(start));
  std::vector<std::string> lines{text.substr(0, start)};
  std::string word;
  bool empty = true;
  while (words >> word) {
    if (!empty && lines.back().size() + 1 + word.size() > kWidth) {
      lines.emplace_back(start, ' ');
      empty = true;
    }
    lines.back() += (empty ? "" : " ") + word;
    empty = false;
  }
  return lines;
}

void print_wrapped(const std::string& text) {
  for (const std::string& line : wrapped(text)) lab::print("{}\n", line);
}

std::string layer_list(const std::vector<int64_t>& numbers) {
  constexpr size_t kMostRuns = 4;
  std::string list;
  size_t runs = 0;
  for (size_t first = 0; first < numbers.size();) {
    size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (runs++ == kMostRuns) return fmt::format("{}, ... ({} layers)", list, numbers.size());
    list += (list.empty() ? "" : ", ") + std::to_string(numbers[first]);
    if (last > first) list += fmt::format("-{}", numbers[last]);
    first = last + 1;
  }
  return list;
}

void print_table(const std::vector<Line>& lines) {
  std::vector<size_t> widths(lines.at(0).size());
  for (const Line& line : lines) {
    for (size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  for (const Line& line : lines) {
    std::string row;
    for (size_t c = 0; c < widths.size(); ++c) row += fmt::format("{:<{}}  ", line[c], widths[c]);
    row.erase(row.find_last_not_of(' ') + 1);
    lab::print("{}\n", row);
  }
  lab::print("\n");
}

void print_groups(const std::vector<Subject>& subjects) {
  std::vector<Line> lines = {
      {"layers", "rotates", "pairs of", "base", "stretch", "window", "query law"}};
  for (const Subject& subject : subjects) lines.push_back(line_of(subject));
  print_table(lines);
}

chart::LineChart wavelengths(const Subject& subject) {
  Wavelengths before = {.name = "as trained"};
  Wavelengths after = {.name = "stretched"};
  for (const PairExplained& pair : subject.numbers.pairs) {
    before.frequencies.push_back(pair.frequency);
    after.frequencies.push_back(pair.stretched);
  }
  chart::LineChart chart =
      wavelengths_chart(std::vector<Wavelengths>{before, after}, subject.numbers.trained);
  chart.title = "Wavelengths before and after " + name_of(subject.config.scaling).name;
  chart.subtitle =
      fmt::format("base {:.6g}, {} pairs", subject.config.base, subject.numbers.pairs.size());
  chart.series[1].emphasis = true;
  return chart;
}

}  // namespace sextant::cli
