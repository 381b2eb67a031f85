#include "sextant/lab/plan/stretches.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace sextant::lab {
namespace {

using nlohmann::json;

struct Stretch {
  const char* name;
  const char* type;
  bool by_factor;         // else by the length of each sequence
  double beta_fast = 0;   // rotations; 0: 32, as in the paper
  bool by_turns = false;  // YaRN's ramp as in the paper, else as in the authors' code
};
constexpr Stretch kStretches[] = {
    {"pi", "linear", true},
    {"ntk", "ntk", true},
    {"ntk-mixed", "ntk-mixed", true},
    {"yarn", "yarn", true},
    {"yarn-paper", "yarn", true, 0, true},
    {"yarn-8-turns", "yarn", true, kFewTurns},
    {"dynamic-pi", "dynamic-linear", false},
    {"dynamic-ntk", "dynamic-ntk", false},
    {"dynamic-yarn", "dynamic-yarn", false, kFewTurns},
};

}  // namespace

std::vector<std::string> stretch_names() {
  std::vector<std::string> names;
  for (const Stretch& one : kStretches) names.emplace_back(one.name);
  return names;
}

json stretch_named(std::string_view name, double factor) {
  const auto* const found = std::ranges::find(kStretches, name, &Stretch::name);
  if (found == std::end(kStretches)) return nullptr;
  json stretch = {{"rope_type", found->type}};
  if (found->by_factor) stretch["factor"] = factor;
  if (found->beta_fast > 0) stretch["beta_fast"] = found->beta_fast;
  if (found->by_turns) stretch["ramp"] = "turns";
  return stretch;
}

int64_t default_window(std::string_view method, int64_t trained) {
  return method == "self-extend" ? (trained + 3) / 4 : (trained + 1) / 2;
}

ChunkSizes default_chunks(int64_t trained) {
  return {.size = (3 * trained + 3) / 4, .local = trained / 8};
}

json piecewise_options(std::string_view method, int64_t trained, int64_t reach) {
  const int64_t window = default_window(method, trained);
  const double factor = static_cast<double>(reach - window) / static_cast<double>(trained - window);
  if (method == "leaky-rerope") return {{"factor", factor}};
  if (method == "self-extend") return {{"group", static_cast<int64_t>(std::ceil(factor))}};
  return json::object();
}

}  // namespace sextant::lab
