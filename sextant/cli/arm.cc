// sextant arm FOLDER...: runs one arm of a survey, or arms that measure a checkpoint. The command
// is hidden, because the survey calls it with its progress pipe as descriptor 3. Called by hand,
// `sextant arm runs/survey/arms/rope-0` runs one arm again.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/cli/commands.h"
#include "sextant/lab/run/arm_process.h"
#include "sextant/lab/run/measure.h"
#include "sextant/lab/run/own_arms.h"
#include "sextant/lab/run/plugin.h"

namespace sextant::cli {
namespace {

struct ArmOptions {
  std::vector<std::string> folders;
  std::string check;
  int threads = 1;
  double save_seconds = lab::Watch().seconds_between_checkpoints;
};

int work(const ArmOptions& options) {
  return lab::run_arm_process(options.save_seconds, [&](const lab::Watch& watch) {
    if (!options.check.empty()) lab::become_own_check(options.check, options.threads);
    const std::string& folder = options.folders.front();
    if (lab::is_measured_arm(folder)) lab::become_measurement(options.folders);
    if (options.folders.size() > 1) fail("arm: FOLDER: expected one arm of a survey, but got more");
    if (lab::is_own_arm(folder)) lab::become_own_arm(folder, options.threads, options.save_seconds);
    return lab::open_plugin(options.threads).run_arm(folder, watch);
  });
}

}  // namespace

void add_arm(CLI::App& app) {
  CLI::App* command = app.add_subcommand("arm", "Carry out one arm of a survey");
  command->group("");  // hidden in the help
  auto options = std::make_shared<ArmOptions>();
  command->add_option("FOLDER", options->folders, "The arm's folder");
  command->add_option("--check", options->check,
                      "Instead of a folder: an arm of an encoding of one's own and its settings");
  command->add_option("--threads", options->threads, "Threads of matrix products");
  command->add_option("--save-seconds", options->save_seconds, "Seconds between checkpoints");
  command->callback([options] {
    if (options->folders.empty() == options->check.empty())
      fail("arm: expected FOLDER or --check, and one of them only");
    const int status = work(*options);
    if (status != 0) throw CLI::RuntimeError(status);
  });
}

}  // namespace sextant::cli
