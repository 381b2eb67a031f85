// Arms that a launcher runs on other machines, such as `srun -n1 -c2` or `ssh HOST`. Launchers pass
// neither descriptors nor, in general, signals, so the two sides talk by files in the arm's folder:
// `progress` has the worker's last report (worker.h), and a worker stops when there is a `stop`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sextant/lab/run/worker.h"

namespace sextant::lab {

// The words of a launcher, separated by spaces; none if `prefix` is empty. Throws Error for quotes,
// which are not understood, and for spaces alone.
std::vector<std::string> launcher_words(const std::string& option, const std::string& prefix);

// The command by which a launcher runs `command` in `folder`, with absolute paths. ssh gives its
// words to a shell, so for it they are quoted.
std::vector<std::string> launched(const std::vector<std::string>& launcher,
                                  std::vector<std::string> command,
                                  const std::filesystem::path& folder);

// The last report of a worker elsewhere; its total is 0 if there is none.
ProgressReport read_progress(const std::filesystem::path& folder);
// Both ignore errors, as nothing depends on them.
void write_progress(const std::filesystem::path& folder, const ProgressReport& report);
void ask_to_stop(const std::filesystem::path& folder);
// Removes the requests to stop and the reports of an earlier run.
void forget_messages(const std::filesystem::path& folder);

}  // namespace sextant::lab
