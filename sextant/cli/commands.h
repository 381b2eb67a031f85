// The subcommands of `sextant`, one file each: add_x() declares x's options; its callback does the
// work, throws Error when it cannot, and throws CLI::RuntimeError(code) to end with an exit status
// that is not 0 or 1. Only evaluate, extend, methods, arm, and, when there is work to do, plot,
// survey and train load libtorch.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace sextant::cli {

void add_convert(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_explain(CLI::App& app);
void add_extend(CLI::App& app);
void add_methods(CLI::App& app);
void add_plot(CLI::App& app);
// `command_line`: the words that the user typed, for a message on how to go on.
void add_survey(CLI::App& app, const std::string& command_line);
void add_train(CLI::App& app, const std::string& command_line);
void add_arm(CLI::App& app);  // one arm of a survey; the survey starts these

// The text of --version: version, commit, backends, SIMD target and libtorch.
std::string version_text();

}  // namespace sextant::cli
