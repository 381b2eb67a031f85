// sextant arm FOLDER...: runs prepared arms of a survey, or arms that measure a checkpoint. Each
// runs in a process of its own, this command again with --progress-fd, which holds the lock of the
// arm's folder (sextant/lab/run/arm_lock.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/cli/commands.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/arm_process.h"
#include "sextant/lab/run/hand_out.h"
#include "sextant/lab/run/print.h"
#include "sextant/lab/run/schedule.h"

namespace sextant::cli {
namespace {

struct ArmOptions {
  std::vector<std::string> folders;
  std::string check;
  int threads = 0;  // 0: as the arm's settings say
  lab::ArmProcess process;
  bool waits = false;
};

int conduct(const ArmOptions& options) {
  const std::vector<lab::ScheduledArm> arms = lab::arms_in(options.folders);
  std::vector<std::string> worker{"/proc/self/exe", "arm", "--save-seconds",
                                  fmt::format("{}", options.process.save_seconds)};
  if (options.threads > 0)
    worker.insert(worker.end(), {"--threads", std::to_string(options.threads)});
  if (!options.process.device.empty()) {
    lab::check_device_name(options.process.device);
    worker.insert(worker.end(), {"--device", options.process.device});
  }
  const lab::ScheduleEnd end =
      lab::run_arms(arms, {.worker = worker, .waits = options.waits, .writes = true});
  if (!end.cannot_write.empty()) {
    lab::note("sextant: arm: " + end.cannot_write);
    return lab::kCannotWriteStatus;
  }
  for (const std::string& busy : end.busy) lab::note("left out: " + busy);
  for (const std::string& failure : end.failures) lab::note("failed: " + failure);
  if (!end.failures.empty()) return 1;
  if (end.stopped) lab::note("stopped; the same command goes on");
  return end.stopped || !end.busy.empty() ? lab::kStoppedStatus : 0;
}

int arm(const ArmOptions& options) {
  if (options.folders.empty() && options.check.empty())
    fail("arm: FOLDER: expected folders of prepared arms, as in arms.txt, but got none");
  if (!options.folders.empty() && !options.check.empty())
    fail("arm: --check: expected no FOLDER beside it, but got " + options.folders.front());
  if (!options.check.empty()) {
    return lab::run_arm_process(options.process, [&](const lab::Watch&) -> int {
      lab::become_own_check(options.check, std::max(1, options.threads),
                            options.process.progress_file);
    });
  }
  if (options.process.progress_file == lab::kNoProgressFile) return conduct(options);
  return lab::run_locked_arms(options.folders, options.threads, options.process);
}

}  // namespace

void add_arm(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "arm", "Carry out prepared arms of survey, evaluate, extend or retrieve, on any machine");
  auto options = std::make_shared<ArmOptions>();
  command->add_option("FOLDER", options->folders,
                      "Folders of arms, as in arms.txt of --prepare; those that are done or that "
                      "another worker is at are left out");
  command->add_flag("--wait", options->waits,
                    "Wait for the weights that an arm needs of another one");
  command->add_option("--threads", options->threads, "Threads of a survey's arm")
      ->check(CLI::PositiveNumber)
      ->default_str("as prepared");
  command
      ->add_option("--device", options->process.device,
                   "Device of a survey's arm: cpu, cuda, or cuda:1 for the second GPU")
      ->default_str("as prepared");
  command
      ->add_option("--save-seconds", options->process.save_seconds,
                   "Seconds between checkpoints of a training")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--progress-fd", options->process.progress_file,
                   "Carry out the arms in this process and report to this descriptor")
      ->group("");
  command
      ->add_flag("--grouped", options->process.grouped,
                 "Train the arm with the other processes of sextant train")
      ->group("");
  command->add_option("--check", options->check, "An arm of an encoding of one's own, as JSON")
      ->group("");
  command->footer(
      "Exit status: 0 all are done, 75 stopped or left out (run it again), 1 failed, 74 cannot "
      "write.\nSIGTERM, or a file FOLDER/stop, lets the arm save its state and stop.");
  command->callback([options] { end_with(arm(*options)); });
}

}  // namespace sextant::cli
