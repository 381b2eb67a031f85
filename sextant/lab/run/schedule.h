// Runs the unfinished arms, several at a time, each in its own process.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sextant::lab {

// An arm as a folder with its arm.json.
struct ScheduledArm {
  std::string name;
  std::filesystem::path folder;
  const char* done_file = nullptr;   // in `folder`, exists when the arm is done
  std::filesystem::path needs = {};  // the folder of the arm whose weights this one uses, or empty
  double work = 1;                   // in any unit that is the same for all arms
};
bool is_done(const ScheduledArm& arm);

struct ScheduleOptions {
  // The command, to which the arm's folder is added: {"/proc/self/exe", "arm"}.
  std::vector<std::string> worker;
  int jobs = 1;  // arms at a time
  // Words of a launcher, such as {"srun", "-n1"}, that runs the command after it on some machine.
  // Arms then report by a file in their folders, and are asked to stop by one.
  std::vector<std::string> launch = {};
  bool waits = false;   // for weights of arms that are not among those given
  bool writes = false;  // reports to FOLDER/progress, for a launcher's parent
  // Called after more arms are done, when the next ones are already running. The lines it returns
  // are printed between progress lines. May be empty.
  std::function<std::string()> on_done = {};
};

struct ScheduleEnd {
  bool stopped = false;      // before all arms were done; finished work is kept
  std::string cannot_write;  // why, if not by a signal: "rope-0: write ...: cannot write: ..."
  bool arm_stopped = false;  // an arm saved its state and ended for another reason: it is busy
  std::vector<std::string> failures;  // "rope-0: signal 9 (Killed); see .../log.txt"
  std::vector<std::string> busy;      // "rope-0: process 17 on host n03 works on it"
};

// Runs the arms in the given order. The first SIGINT, SIGTERM or SIGHUP lets the arms save their
// state and stop, a second one kills them. An arm that fails, or that another worker is at, blocks
// only the arms that need its weights. An arm that cannot write stops the whole schedule, because
// all arms write to the same directory.
ScheduleEnd run_arms(std::span<const ScheduledArm> arms, const ScheduleOptions& options);

}  // namespace sextant::lab
