// The command `sextant`. Exit status: 0 done, 1 could not be done (the reason is on standard
// error), 2 the command line was wrong, 130 interrupted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "sextant/cli/commands.h"
#include "sextant/lab/shell_word.h"

namespace {

constexpr int kUsage = 2;

int exit_status(const CLI::App& app, const CLI::ParseError& error) {
  const int status = app.exit(error);  // prints help, the version or what was wrong
  const bool asked_for = status == 0 || error.get_name() == "RuntimeError";
  return asked_for ? status : kUsage;
}

// The command line again, as a shell would read it.
std::string quoted(int argc, char** argv) {
  std::string line;
  for (int n = 0; n < argc; ++n) {
    line += fmt::format("{}{}", n == 0 ? "" : " ", sextant::lab::shell_word(argv[n]));
  }
  return line;
}

// CLI11 would say only that a subcommand is required.
bool is_unknown_command(const CLI::App& app, const std::string& word) {
  if (word.starts_with('-')) return false;
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->check_name(word)) return false;
    if (!command->get_group().empty()) known += " " + command->get_name();
  }
  fmt::print(stderr, "sextant: {}: expected one of{}\n", word, known);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Position encodings for transformers: train short, read long.", "sextant");
  app.set_version_flag("--version", "sextant " SEXTANT_VERSION);
  app.require_subcommand(1);
  sextant::cli::add_explain(app);
  sextant::cli::add_convert(app);
  sextant::cli::add_plot(app);
  sextant::cli::add_survey(app, quoted(argc, argv));
  sextant::cli::add_train(app, quoted(argc, argv));
  sextant::cli::add_evaluate(app);
  sextant::cli::add_extend(app);
  sextant::cli::add_worker(app);
  if (argc > 1 && is_unknown_command(app, argv[1])) return kUsage;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return exit_status(app, error);
  } catch (const std::exception& error) {
    // Not fmt::print, which throws where nothing can be written.
    std::fprintf(stderr, "sextant: %s\n", error.what());
    return 1;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "sextant: standard output: cannot write: %s\n", std::strerror(errno));
    return 1;
  }
  return 0;
}
