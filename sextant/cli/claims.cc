// sextant claims: lists the claims of the literature that surveys can check, with their sources and
// the arms that they need.

#include <CLI/CLI.hpp>
#include <memory>

#include "sextant/cli/commands.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {

void add_claims(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "claims", "List the claims of the literature that a survey checks, with their sources");
  struct Request {
    bool only_open = false, as_json = false;
  };
  auto request = std::make_shared<Request>();
  command->add_flag("--open", request->only_open,
                    "Those that belong to an open question of the survey notes");
  command->add_flag("--json", request->as_json, "The same for programs");
  command->callback(
      [request] { lab::print_text(claims_text(request->only_open, request->as_json)); });
}

}  // namespace sextant::cli
