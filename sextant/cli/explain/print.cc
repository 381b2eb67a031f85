// For people, who need not have heard of any of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <variant>

#include "sextant/cli/explain/subject.h"

namespace sextant::cli {
namespace {

std::string number(double x) { return fmt::format("{:.6g}", x); }

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

// Lines of at most 90 letters, broken at spaces.
void print_wrapped(const std::string& text) {
  constexpr size_t kWidth = 90;
  std::istringstream words(text);
  std::string line, word;
  while (words >> word) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      fmt::print("{}\n", line);
      line.clear();
    }
    line += (line.empty() ? "" : " ");
    line += word;
  }
  fmt::print("{}\n", line);
}

std::string value(const nlohmann::json& x) {
  if (x.is_number_float()) return number(x.get<double>());
  if (!x.is_array() || x.size() <= 4) return x.dump();
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  return fmt::format("({} numbers from {} to {})", x.size(), number(low->get<double>()),
                     number(high->get<double>()));
}

void print_parameters(const RopeConfig& setting) {
  std::string line;
  const nlohmann::json parameters = parameters_of(setting);
  for (const auto& item : parameters.items()) {
    line += (line.empty() ? "" : ", ") + item.key() + " " + value(item.value());
  }
  if (!line.empty()) fmt::print("parameters    {}\n", line);
}

void print_axes(const RopeScaling& scaling) {
  constexpr const char* kAxes[] = {"time", "height", "width", "a fourth axis"};
  std::string line;
  for (size_t a = 0; a < scaling.sections.size(); ++a) {
    line += fmt::format("{}{} follow {}", line.empty() ? "" : ", ", scaling.sections[a],
                        kAxes[std::min<size_t>(a, 3)]);
  }
  if (line.empty()) return;
  fmt::print("axes          of the pairs {}{}\n", line,
             scaling.interleaved_sections ? ", in turn" : ", one block after the other");
}

// How far queries of these layers see.
void print_layers(const RopeConfig& setting, const Explained& n) {
  const std::string where = setting.bounded_in.empty() ? "" : " in " + setting.bounded_in;
  if (setting.window > 0) {
    fmt::print("window        {} positions{}, the query's own included\n", setting.window, where);
  }
  if (setting.chunk > 0) {
    fmt::print("chunks        of {} positions{}: a query sees its own\n", setting.chunk, where);
  }
  if (n.reach > 0) fmt::print("              so no distance is beyond {}\n", n.reach);
  for (const std::string& note : setting.notes) fmt::print("layers        {}\n", note);
}

void print_head(const Subject& subject) {
  const auto& [setting, n] = subject;
  const Named named = name_of(setting.scaling);
  fmt::print("method        {}{}{}\n", named.name, named.source.empty() ? "" : ", ", named.source);
  if (!named.meaning.empty()) fmt::print("              {}\n", named.meaning);
  print_parameters(setting);
  print_axes(setting.scaling);
  if (n.factor != 1) fmt::print("stretch       {} times\n", number(n.factor));
  if (n.trained > 0) fmt::print("trained on    {} positions\n", n.trained);
  if (const auto* stretch = std::get_if<Stretch>(&setting.scaling.stretch);
      stretch && std::holds_alternative<Linear>(*stretch) && n.factor != 1 && n.trained > 0)
    fmt::print(
        "              (max_position_embeddings; this type does not say the original length, and\n"
        "              some models, Gemma 3 among them, have the stretched one there)\n");
  if (n.target > 0) fmt::print("read up to    {} positions\n", n.target);
  fmt::print("frequencies   {} pairs of {} channels rotate, base {}\n", n.pairs.size(),
             setting.head_dim, number(setting.base));
  if (n.gain != 1) {
    fmt::print("attention     queries and keys times {}, so scores of rotated channels times {}\n",
               number(n.gain), number(n.gain * n.gain));
  }
  if (setting.scaling.score_factor != 1) {
    fmt::print("              and all scores times {}\n", number(setting.scaling.score_factor));
  }
  fmt::print("softmax       scale {}, against {} of plain attention with {} channels\n",
             number(n.turned_scale), number(1 / std::sqrt(static_cast<double>(setting.head_dim))),
             setting.head_dim);
  if (const std::string law = law_of(setting.scaling.query_scale); !law.empty()) {
    fmt::print("queries       times {} at position i\n", law);
  }
  print_layers(setting, n);
}

void print_pairs(const Subject& subject, bool all) {
  constexpr size_t kFewRows = 12;
  const std::vector<PairExplained>& pairs = subject.numbers.pairs;
  fmt::print("\n{:>5} {:>12} {:>14} {:>14} {:>14}  {}\n", "pair", "frequency", "wavelength",
             "stretched", "new from", "what is done");
  const size_t every = all ? 1 : (pairs.size() + kFewRows - 1) / kFewRows;
  for (size_t f = 0; f < pairs.size(); ++f) {
    if (f % every != 0 && f + 1 != pairs.size()) continue;
    const auto wave = [](double speed) {
      return speed == 0 ? std::string("-") : fmt::format("{:.1f}", 6.283185307179586 / speed);
    };
    fmt::print("{:>5} {:>12.4g} {:>14} {:>14} {:>14}  {}\n", f, pairs[f].speed,
               wave(pairs[f].speed), wave(pairs[f].stretched), leaving(pairs[f]), fate(pairs[f]));
  }
  fmt::print(
      "\nA pair of channels completes one rotation in a wavelength of positions. From the "
      "distance\n"
      "\"new from\" on its angle is one that training never showed; a pair that completed a "
      "rotation\n"
      "in training has no such distance.\n");
}

void print_hazards(const Subject& subject) {
  const Explained& n = subject.numbers;
  fmt::print("\n");
  // L - 1 steps times the factor: the last `factor` positions are no news.
  const auto reach = static_cast<double>(n.first_leaving) + n.factor;
  const int64_t seen = n.reach > 0 ? std::min(n.target, n.reach + 1) : n.target;
  if (n.trained > 0 && n.first_leaving > 0 && reach < static_cast<double>(seen)) {
    print_wrapped(fmt::format(
        "From distance {} on some pair is at angles that training never showed: unless the model "
        "was trained again with this setting, expect trouble between there and {}.",
        n.first_leaving, seen));
  } else if (n.trained > 0 && n.target > 0) {
    fmt::print("Up to {} positions no pair leaves the angles that training showed.\n", n.target);
  }
  if (n.target > 0) {
    print_wrapped(fmt::format(
        "With angles computed in float32, as most engines do, a cosine at position {} is wrong by "
        "up to {:.2g}; with positions or frequencies in bfloat16 it is meaningless there.",
        n.target, n.float32_error));
  }
  for (const std::string& warning : subject.setting.scaling.warnings) {
    print_wrapped("warning: " + warning);
  }
}

}  // namespace

void print(const Subject& subject, bool all) {
  // The name comes from a file, and goes to a terminal.
  std::string layers = subject.setting.layers.substr(0, 60);
  for (char& c : layers) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (!layers.empty()) fmt::print("\n== layers: {} ==\n", layers);
  print_head(subject);
  print_pairs(subject, all);
  print_hazards(subject);
}

}  // namespace sextant::cli
