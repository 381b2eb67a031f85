// sextant methods [NAME]: lists the position encodings, or prints the formula and options of one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sextant/base/nearest.h"
#include "sextant/cli/commands.h"
#include "sextant/lab/plan/arms.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

using lab::KnownMethod;

struct MethodsRequest {
  std::string name;
  bool as_json = false;
};

[[noreturn]] void refuse(const std::string& name, std::span<const KnownMethod> methods) {
  const std::vector<std::string> stretches = lab::stretches();
  if (std::ranges::find(stretches, name) != stretches.end())
    throw CLI::ValidationError(
        fmt::format("NAME: expected a method, but got {}, which stretches a trained rope: see "
                    "docs/methods/stretches.md and sextant survey --list",
                    name));
  std::vector<std::string> names;
  for (const KnownMethod& method : methods) names.push_back(method.name);
  throw CLI::ValidationError(fmt::format(
      "NAME: expected a method, but got {}; the nearest are {} (sextant methods lists all)", name,
      fmt::join(nearest(name, names), ", ")));
}

void print_methods(const MethodsRequest& request) {
  const std::vector<KnownMethod> methods = lab::open_plugin(/*threads=*/1).methods();
  if (request.name.empty()) return lab::print_text(methods_text(methods, request.as_json));
  const auto found = std::ranges::find(methods, request.name, &KnownMethod::name);
  if (found == methods.end()) refuse(request.name, methods);
  lab::print_text(method_text(*found, request.as_json));
}

}  // namespace

void add_methods(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("methods", "List the position encodings; of one, its formula and options");
  auto request = std::make_shared<MethodsRequest>();
  command->add_option("NAME", request->name, "A method, to see its formula, options and page");
  command->add_flag("--json", request->as_json, "The same for programs");
  command->callback([request] { print_methods(*request); });
}

}  // namespace sextant::cli
