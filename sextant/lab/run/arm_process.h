// The process of one arm: `sextant arm`, or Python for encodings of one's own.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/plugin.h"

namespace sextant::lab {

inline constexpr int kNoProgressFile = -1;

struct ArmProcess {
  double save_seconds = Watch().seconds_between_checkpoints;
  int progress_file = kNoProgressFile;  // the descriptor of the parent's pipe (worker.h)
  bool grouped = false;                 // see Watch
  std::string device = {};              // see Watch
  bool has_parent = true;               // otherwise SIGINT and SIGHUP are as SIGTERM
};

// Calls run(), with progress reports to the pipe. SIGTERM and ask_to_stop() ask it to save its
// state and to stop. Returns the exit status of the process, which run() returns. An exception is
// reported to the parent and to standard error.
int run_arm_process(const ArmProcess& process, const std::function<int(const Watch&)>& run);

// The exit status for an ending without an error.
int status_of(Ending ending);

// From any thread.
void ask_to_stop();

// Sends a line of worker.h to the parent; errors are ignored, as nothing depends on it.
void send_line(int progress_file, const std::string& line);

// Runs prepared arms in this process, which holds the locks of their folders (arm_lock.h).

// Runs one arm of a survey, or several of one measurement, and leaves out those that are done or
// locked. threads: of a survey's arm, 0: as its settings say. Returns the exit status of the
// process (worker.h): kBusyStatus if an arm was locked.
int run_locked_arms(const std::vector<std::string>& folders, int threads,
                    const ArmProcess& process);

// Arms with an encoding of one's own (plan/own_methods.h), which run in a process of Python:
// python/sextant/own_arm.py opens the plug-in there.

// Whether FOLDER/arm.json has such an arm.
bool is_own_arm(const std::filesystem::path& folder);

// Runs the arm in a child process of Python and returns its exit status. Throws Error if it cannot.
int run_own_arm(const std::string& folder, int threads, const ArmProcess& process,
                const Watch& watch);

// Replaces this process by Python, which makes the encoding of an arm and calls it once.
// `assignment` is the arm and its settings as JSON.
[[noreturn]] void become_own_check(const std::string& assignment, int threads, int progress_file);

// Makes each encoding of one's own and calls it once, in processes of Python, so that an error is
// reported before hours of work. Throws Error that names the arm.
void check_own_arms(const Settings& settings, std::span<const Arm> arms);

}  // namespace sextant::lab
