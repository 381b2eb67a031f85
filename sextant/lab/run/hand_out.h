// The stages of a command that has a folder of arms: other processes, on this machine or on others,
// can run the arms by `sextant arm` between its preparation and its collection.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/run/schedule.h"

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

}  // namespace sextant::lab
