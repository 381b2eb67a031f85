// The command `sextant`. Exit status: 0 success, 1 failure (the reason is on standard error), 2
// wrong command line, 75 arms of other workers are not done, 128 and the number of the signal that
// stopped it: 129 SIGHUP, 130 SIGINT, 143 SIGTERM.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "sextant/base/printable.h"
#include "sextant/base/reason.h"
#include "sextant/cli/commands.h"
#include "sextant/cli/many_machines.h"
#include "sextant/cli/old_options.h"
#include "sextant/lab/run/hand_out.h"
#include "sextant/lab/run/print.h"

namespace {

constexpr int kUsage = 2;

int exit_status(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out, err;
  const int status = app.exit(error, out, err);  // the help, the version or the error
  sextant::lab::print_text(out.str());
  std::string failure = err.str();
  if (failure.ends_with('\n')) failure.pop_back();
  if (!failure.empty()) sextant::lab::note(failure);
  const bool asked_for = status == 0 || error.get_name() == "RuntimeError";
  return asked_for ? status : kUsage;
}

std::string failure_message(const CLI::App* app, const CLI::Error& error) {
  const CLI::Error shown(error.get_name(), sextant::printable_message(error.what()),
                         error.get_exit_code());
  return CLI::FailureMessage::simple(app, shown);
}

// The command line as the user typed it, quoted for a shell. A script that adds arguments, such as
// ./run, passes its own command line in SEXTANT_TYPED, which is removed from the environment of
// child processes.
std::string typed_line(int argc, char** argv) {
  const char* typed = std::getenv("SEXTANT_TYPED");
  std::string line = typed == nullptr ? "" : typed;
  ::unsetenv("SEXTANT_TYPED");
  if (!line.empty()) return line;
  for (int n = 0; n < argc; ++n)
    line += fmt::format("{}{}", n == 0 ? "" : " ", sextant::lab::shell_word(argv[n]));
  return line;
}

// Options without a command belong to survey.
bool is_option_of_survey(const std::string& word) {
  return word.starts_with('-') && word != "-h" && word != "--help" && word != "--version";
}

// Prints the known commands; CLI11 would only say that a subcommand is required.
bool is_unknown_command(const CLI::App& app, const std::string& word) {
  if (word.starts_with('-')) return false;
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->check_name(word)) return false;
    if (!command->get_group().empty()) known += " " + command->get_name();
  }
  sextant::lab::print_error(fmt::format("{}: expected one of{}", word, known));
  return true;
}

}  // namespace

void sextant::cli::end_with(int status) {
  if (status != 0) throw CLI::RuntimeError(status);
}

int main(int argc, char** argv) {
  CLI::App app("Position encodings and length extrapolation for transformers.", "sextant");
  app.set_version_flag("--version", sextant::cli::version_text);
  app.require_subcommand(1);
  app.failure_message(failure_message);
  sextant::cli::add_explain(app);
  sextant::cli::add_convert(app);
  sextant::cli::add_doctor(app);
  sextant::cli::add_plot(app);
  const std::string typed = typed_line(argc, argv);
  sextant::cli::add_survey(app, typed);
  sextant::cli::add_train(app, typed);
  sextant::cli::add_evaluate(app);
  sextant::cli::add_extend(app);
  sextant::cli::add_retrieve(app, typed);
  sextant::cli::add_report(app);
  sextant::cli::add_methods(app);
  sextant::cli::add_claims(app);
  sextant::cli::add_arm(app);
  // Set after the commands are added, so that they do not inherit it.
  app.footer("Options without a command are those of survey.");
  std::vector<std::string> words(argv, argv + argc);
  if (argc > 1 && is_option_of_survey(argv[1])) words.insert(words.begin() + 1, "survey");
  if (argc > 1 && is_unknown_command(app, words[1])) return kUsage;
  try {
    words = sextant::cli::with_new_names(sextant::cli::with_collected(words));
    std::vector<const char*> pointers;
    pointers.reserve(words.size());
    for (const std::string& word : words) pointers.push_back(word.c_str());
    app.parse(static_cast<int>(pointers.size()), pointers.data());
  } catch (const CLI::ParseError& error) {
    return exit_status(app, error);
  } catch (const std::exception& error) {
    sextant::lab::print_error(sextant::reason_of(error));
    return 1;
  }
  const std::string why = sextant::lab::output_error();
  if (why.empty()) return 0;
  sextant::lab::print_error("standard output: cannot write: " + why);
  return 1;
}
