// sextant methods [NAME]: the position encodings that there are; of one, its formula and options.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sextant/cli/commands.h"
#include "sextant/cli/nearest.h"
#include "sextant/lab/plugin.h"
#include "sextant/lab/survey.h"

namespace sextant::cli {
namespace {

using lab::KnownMethod;
using nlohmann::ordered_json;

struct Request {
  std::string name;
  bool as_json = false;
};

std::string page_of(const KnownMethod& method) { return "docs/methods/" + method.name + ".md"; }

ordered_json json_of(const KnownMethod& method) {
  return {{"name", method.name},
          {"summary", method.summary},
          {"formula", method.formula},
          {"options", ordered_json::parse(method.options)},
          {"page", page_of(method)}};
}

void print(std::span<const KnownMethod> methods) {
  for (const KnownMethod& method : methods) fmt::print("{:<16}{}\n", method.name, method.summary);
  fmt::print(
      "\nFormula, options and page of one: sextant methods NAME\n"
      "How to stretch a trained rope:    sextant survey --list\n");
}

void print(const KnownMethod& method) {
  constexpr std::string_view kBetween = "; ";
  fmt::print("{}: {}\n\n", method.name, method.summary);
  std::string_view rest = method.formula;
  while (!rest.empty()) {
    const std::string_view clause = rest.substr(0, rest.find(kBetween));
    fmt::print("  {}\n", clause);
    rest.remove_prefix(std::min(rest.size(), clause.size() + kBetween.size()));
  }
  const ordered_json options = ordered_json::parse(method.options);
  fmt::print("\n{}\n", options.empty() ? "No options." : "Options and their defaults:");
  size_t width = 0;
  for (const auto& option : options.items()) width = std::max(width, option.key().size());
  for (const auto& option : options.items()) {
    fmt::print("  {:<{}}  {}\n", option.key(), width, option.value().dump());
  }
  fmt::print("\nPage: {}\n", page_of(method));
}

[[noreturn]] void refuse(const std::string& name, std::span<const KnownMethod> methods) {
  if (std::ranges::count(lab::stretches(), name) > 0) {
    throw CLI::ValidationError(
        fmt::format("NAME: expected a method, but got {}, which stretches a trained rope: see "
                    "docs/methods/stretches.md and sextant survey --list",
                    name));
  }
  std::vector<std::string> names;
  for (const KnownMethod& method : methods) names.push_back(method.name);
  throw CLI::ValidationError(fmt::format(
      "NAME: expected a method, but got {}; the nearest are {} (sextant methods lists all)", name,
      fmt::join(nearest(name, names), ", ")));
}

void run(const Request& request) {
  const std::vector<KnownMethod> methods = lab::open_plugin(/*threads=*/1).methods();
  if (request.name.empty()) {
    if (!request.as_json) return print(methods);
    ordered_json all = ordered_json::array();
    for (const KnownMethod& method : methods) all.push_back(json_of(method));
    return fmt::print("{}\n", all.dump(2));
  }
  const auto found = std::ranges::find(methods, request.name, &KnownMethod::name);
  if (found == methods.end()) refuse(request.name, methods);
  if (request.as_json) return fmt::print("{}\n", json_of(*found).dump(2));
  print(*found);
}

}  // namespace

void add_methods(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("methods", "List the position encodings; of one, its formula and options");
  auto request = std::make_shared<Request>();
  command->add_option("NAME", request->name, "A method, to see its formula, options and page");
  command->add_flag("--json", request->as_json, "The same for programs");
  command->callback([request] { run(*request); });
}

}  // namespace sextant::cli
