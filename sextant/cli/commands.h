// The subcommands of `sextant`, one file each: add_x() declares the options of x. The callback does
// the work. It throws Error if the work fails, and CLI::RuntimeError(code) to end with an exit
// status other than 0 or 1. Only evaluate, extend, methods, arm, and, if there is work to do, plot,
// survey and train load libtorch; a finished survey does if a claim needs a method's defaults.
#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
}

namespace sextant::lab {
struct KnownMethod;
}

namespace sextant::cli {

// Exit status of a command some of whose arms are not done and are not its to do (EX_TEMPFAIL).
inline constexpr int kIncomplete = 75;

void add_claims(CLI::App& app);
void add_convert(CLI::App& app);
void add_doctor(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_explain(CLI::App& app);
void add_extend(CLI::App& app);
void add_methods(CLI::App& app);
void add_plot(CLI::App& app);
void add_report(CLI::App& app);
// `command_line`: the command line that the user typed, to be printed in the message on how to
// resume.
void add_retrieve(CLI::App& app, const std::string& command_line);
void add_survey(CLI::App& app, const std::string& command_line);
void add_train(CLI::App& app, const std::string& command_line);
void add_arm(CLI::App& app);

// The text of --version: version, commit, backends, SIMD target and libtorch.
std::string version_text();
// Those of `sextant claims`, of all or of those on open questions, and of `sextant methods`.
std::string claims_text(bool only_open, bool as_json);
std::string methods_text(std::span<const lab::KnownMethod> methods, bool as_json);
std::string method_text(const lab::KnownMethod& method, bool as_json);

// Ends the command with this exit status.
void end_with(int status);

}  // namespace sextant::cli
