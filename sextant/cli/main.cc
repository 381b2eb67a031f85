// The command `sextant`. Exit status: 0 done, 1 could not be done (the reason is on standard
// error), 2 the command line was wrong, 130 interrupted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "sextant/cli/commands.h"

namespace {

constexpr int kUsage = 2;

int exit_status(const CLI::App& app, const CLI::ParseError& error) {
  const int status = app.exit(error);  // prints help, the version or what was wrong
  const bool asked_for = status == 0 || error.get_name() == "RuntimeError";
  return asked_for ? status : kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Position encodings for transformers: train short, read long.", "sextant");
  app.set_version_flag("--version", "sextant " SEXTANT_VERSION);
  app.require_subcommand(1);
  sextant::cli::add_plot(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return exit_status(app, error);
  } catch (const std::exception& error) {
    fmt::print(stderr, "sextant: {}\n", error.what());
    return 1;
  }
  return 0;
}
