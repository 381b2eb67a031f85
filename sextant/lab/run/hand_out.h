// The stages of a command that has a folder of arms: other processes, on this machine or on others,
// can run the arms by `sextant arm` between its preparation and its collection.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/schedule.h"
#include "sextant/lab/run/worker.h"

namespace sextant::lab {

enum class Stage {
  kRun,      // prepare, run and collect
  kPrepare,  // write the arms' folders and the lists of them
  kCollect,  // use what is there
};

struct HandOut {
  Stage stage = Stage::kRun;
  std::vector<std::string> launch = {};  // see ScheduleOptions
  int jobs = 1;                          // arms at a time if there is a launcher
};

// The folders of arms relative to `folder`, one per line: first those that need no other arm's
// weights, then those that do.
inline constexpr const char* kArmsFile = "arms.txt";
inline constexpr const char* kSecondArmsFile = "arms-second.txt";

void write_lists(const std::filesystem::path& folder, std::span<const ScheduledArm> arms);

// "14 arms are prepared in runs/a: 12 in runs/a/arms.txt, ...", with the commands that follow.
std::string prepared_text(const std::filesystem::path& folder, std::span<const ScheduledArm> arms,
                          const std::string& command);

// "3 of 14 arms are not done: rope-0, ..."; empty if all are.
std::string missing_text(std::span<const ScheduledArm> arms);

// Arms that a launcher runs on other machines, such as `srun -n1 -c2` or `ssh HOST`. Launchers pass
// neither descriptors nor, in general, signals, so the two sides talk by files in the arm's folder:
// `progress` has the worker's last report (worker.h), and a worker stops when there is a `stop`.

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

// The arms of the folders that `sextant arm FOLDER...` is given. Throws Error for a folder without
// arm.json.
std::vector<ScheduledArm> arms_in(const std::vector<std::string>& folders);

// The word of a printed command line, quoted if a shell would change it otherwise.
std::string shell_word(std::string word);

// The name of the folder of a survey's arm.
std::string folder_name(std::string arm_name);
std::filesystem::path arm_directory(const std::filesystem::path& survey, const Arm& arm);
bool is_done(const std::filesystem::path& survey, const Arm& arm);

// Number of tokens that the tests of an arm of this task process.
double test_tokens(const Settings& settings, Task task);

// Estimated work of an arm, in tokens of a forward pass of the text model.
double work_of(const Settings& settings, const Arm& arm);

// The arms in the given order.
std::vector<ScheduledArm> scheduled(const std::filesystem::path& survey, const Settings& settings,
                                    std::span<const Arm> arms);

}  // namespace sextant::lab
