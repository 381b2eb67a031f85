// Trains one model from a settings file, with checkpoints, and writes a folder in Hugging Face's
// format.
//
//   CONFIG.json --+                         DIR/training/    manifest, arm, checkpoints: schedule.h
//   text ---------+--> a survey of one arm --> DIR/config.json, model.safetensors, tokenizer.json
//
// The file lists the fields that differ from the defaults (example_plan()):
//
//   {"method": "rope", "options": {"base": 500000.0}, "seed": 0, "memory": 0, "threads": 1,
//    "device": "cpu", "objective": "causal" or "masked" (bytes, with attention in both directions),
//    "model": {"layers": 6, "width": 256, "heads": 8, ...}, "training": {"length": 256, ...},
//    "test": {"blocks": 64, "share": 0.05, ...}, "text": ["book.txt", "folder"]}
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sextant/base/launched_rank.h"
#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

// The model to train, its settings and its text.
struct TrainingPlan {
  Settings settings;
  Arm arm;
  std::vector<std::filesystem::path> text;  // empty: default_text()
};

// A settings file with every field and its default. Sizes that are derived from other sizes are
// null.
std::string example_plan();

// Throws Error that names the file, and the field that is unknown, out of range or of a wrong type.
TrainingPlan read_plan(const std::filesystem::path& file);

struct TrainModelOptions {
  TrainingPlan plan;
  std::filesystem::path directory;  // --out
  std::vector<std::string> worker;  // the command that runs one arm, without the arm's folder
  std::string command;              // as the user gave it, for "go on with"
  bool own_text = true;             // not default_text(), the default of evaluate and extend
};

enum class TrainEnd { kDone, kFailed, kStopped };

// Repeating the same call resumes an unfinished training; other settings in the same directory are
// refused. Processes that torchrun or srun has started train one model together
// (training_rank()): rank 0 does all that one process does, the others compute their share of each
// step. Prints the model's losses on standard output and progress on standard error. Throws
// Error.
TrainEnd train_model(const TrainModelOptions& options);

// The processes that train one model together: `sextant train`, started several times by torchrun
// or srun. No other command of the laboratory forms a group.

// This process's place in a training. Variables of Slurm count within a step of srun only: a batch
// script has them as well, and runs once.
LaunchedRank training_rank();

// Throws Error if the rows of a batch cannot be divided among the ranks.
void check_rows(int64_t batch, int64_t ranks);

}  // namespace sextant::lab
