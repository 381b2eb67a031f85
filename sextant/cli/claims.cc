// sextant claims: lists the claims of the literature that surveys can check, with their sources and
// the arms that they need.

#include <CLI/CLI.hpp>
#include <memory>

#include "sextant/cli/claims_text.h"
#include "sextant/cli/commands.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

struct ClaimsRequest {
  bool only_open = false, as_json = false;
};

}  // namespace

void add_claims(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "claims", "List the claims of the literature that a survey checks, with their sources");
  auto request = std::make_shared<ClaimsRequest>();
  command->add_flag("--open", request->only_open,
                    "Those that belong to an open question of the survey notes");
  command->add_flag("--json", request->as_json, "The same for programs");
  command->callback([request] {
    const std::vector<ListedClaim> claims = listed_claims(request->only_open);
    lab::print_text(request->as_json ? json_text(claims) : text_of(claims));
  });
}

}  // namespace sextant::cli
