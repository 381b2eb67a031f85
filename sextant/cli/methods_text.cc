// Methods as text and as JSON: all of them, or one with its formula and options.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sextant/cli/commands.h"
#include "sextant/lab/run/plugin.h"

namespace sextant::cli {
namespace {

using lab::KnownMethod;
using nlohmann::ordered_json;

constexpr int kIndent = 2;

std::string page_of(const KnownMethod& method) { return "docs/methods/" + method.name + ".md"; }

ordered_json json_of(const KnownMethod& method) {
  return {{"name", method.name},
          {"summary", method.summary},
          {"formula", method.formula},
          {"options", ordered_json::parse(method.options)},
          {"page", page_of(method)}};
}

std::string lines_of_formula(std::string_view formula) {
  constexpr std::string_view kBetween = "; ";
  std::string lines;
  while (!formula.empty()) {
    const std::string_view clause = formula.substr(0, formula.find(kBetween));
    lines += fmt::format("  {}\n", clause);
    formula.remove_prefix(std::min(formula.size(), clause.size() + kBetween.size()));
  }
  return lines;
}

std::string lines_of_options(const ordered_json& options) {
  if (options.empty()) return "No options.\n";
  size_t width = 0;
  for (const auto& option : options.items()) width = std::max(width, option.key().size());
  std::string lines = "Options and their defaults:\n";
  for (const auto& option : options.items())
    lines += fmt::format("  {:<{}}  {}\n", option.key(), width, option.value().dump());
  return lines;
}

}  // namespace

std::string methods_text(std::span<const KnownMethod> methods, bool as_json) {
  ordered_json all = ordered_json::array();
  std::string lines;
  for (const KnownMethod& method : methods) {
    all.push_back(json_of(method));
    lines += fmt::format("{:<16}{}\n", method.name, method.summary);
  }
  if (as_json) return all.dump(kIndent) + "\n";
  return lines +
         "\nFormula, options and page of one: sextant methods NAME\n"
         "How to stretch a trained rope:    sextant survey --list\n";
}

std::string method_text(const KnownMethod& method, bool as_json) {
  if (as_json) return json_of(method).dump(kIndent) + "\n";
  return fmt::format("{}: {}\n\n{}\n{}\nPage: {}\n", method.name, method.summary,
                     lines_of_formula(method.formula),
                     lines_of_options(ordered_json::parse(method.options)), page_of(method));
}

}  // namespace sextant::cli
