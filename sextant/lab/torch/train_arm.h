// The training of an arm, with checkpoints: in this process, or with the other ranks of a group.
//
//   rank 0       reads the newest checkpoint -- broadcast --+   saves    saves, ends as asked
//                                                           |- steps -----+-- steps ... last step
//   other ranks  restore that of rank 0 --------------------+
//
// Rank 0 alone reads and writes files and reports. When to save, and when to stop before the end,
// is agreed on in each step (Trainer::advance), so that all ranks leave at the same one.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/models/decoder/decoder.h"
#include "sextant/torch/group.h"

namespace sextant::lab {

// The content of arm.json.
struct ArmTask {
  Arm arm;
  Settings settings;
  Corpus corpus;
  std::string belongs_to;  // of checkpoints
};

// `what` names the file in errors. Relative names of text are relative to `directory`.
ArmTask task_of(const nlohmann::json& file, const std::string& what,
                const std::filesystem::path& directory);
ArmTask read_task(const std::filesystem::path& directory);

double seconds_since(std::chrono::steady_clock::time_point start);

// The work of the arm's training, a part of work_of().
double training_work(const ArmTask& task);

struct Stopped {};  // thrown when an arm was told to stop and is ready to

// Trains from the newest checkpoint in `directory` to the last step, or until the loss is not
// finite, and records both in `result`. Throws Stopped; Error if a rank is lost or has other
// settings or text than rank 0. Only rank 0 needs `directory`.
void train_arm(const ArmTask& task, Decoder& decoder, const Group& group,
               const std::filesystem::path& directory, const Watch& watch, ArmResult& result);

}  // namespace sextant::lab
