// The table of layer groups, and line wrapping.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "sextant/cli/explain/subject.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

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

// In p-RoPE some pairs have frequency 0.
int64_t moving_pairs(const Explained& numbers) {
  return std::ranges::count_if(numbers.pairs,
                               [](const PairExplained& pair) { return pair.stretched != 0; });
}

std::string shortened(const std::string& name, size_t most) {
  const std::string text = printable(name);
  return text.size() <= most ? text : printable(text.substr(0, most)) + "...";
}

std::string number(double x) { return fmt::format("{:.6g}", x); }

void print_wrapped(const std::string& text) {
  constexpr size_t kWidth = 90;
  // The line begins with a label and spaces; further lines are indented to the text after them.
  const size_t label = text.find("  ");
  const size_t start = label == std::string::npos || label > 14
                           ? 0
                           : std::min(text.find_first_not_of(' ', label), text.size());
  std::istringstream words(text.substr(start));
  std::string line = text.substr(0, start), word;
  bool empty = true;
  while (words >> word) {
    if (!empty && line.size() + 1 + word.size() > kWidth) {
      lab::print("{}\n", line);
      line = std::string(start, ' ');
      empty = true;
    }
    line += (empty ? "" : " ");
    line += word;
    empty = false;
  }
  lab::print("{}\n", line);
}

std::string layer_list(const std::vector<int64_t>& numbers) {
  constexpr size_t kMostRuns = 4;
  std::string list;
  size_t runs = 0;
  for (size_t first = 0; first < numbers.size();) {
    size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (runs++ == kMostRuns) {
      return fmt::format("{}, ... ({} layers)", list, numbers.size());
    }
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

}  // namespace sextant::cli
