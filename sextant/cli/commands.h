// The subcommands of `sextant`, one file each: add_x() declares x's options; its callback does the
// work, throws Error when it cannot, and throws CLI::RuntimeError(code) to end with an exit status
// that is not 0 or 1. Nothing here loads libtorch but evaluate, extend, worker, and, when there is work
// to do, survey and train.
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
void add_plot(CLI::App& app);
// `command_line`: as the user gave it, to be said again.
void add_survey(CLI::App& app, const std::string& command_line);
void add_train(CLI::App& app, const std::string& command_line);
void add_worker(CLI::App& app);  // one arm of a survey; the survey starts these

}  // namespace sextant::cli
