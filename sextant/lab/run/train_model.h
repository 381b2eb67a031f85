// One model from a file of settings, trained durably, that ends as a folder in Hugging Face's form.
//
//   CONFIG.json --+                         DIR/training/    manifest, arm and checkpoints:
//   schedule.h text ---------+--> a survey of one arm --> DIR/config.json, model.safetensors,
//   tokenizer.json
//
// The file says what differs from the defaults (example_plan()):
//
//   {"method": "rope", "options": {"base": 500000.0}, "seed": 0, "memory": 0, "threads": 1,
//    "model": {"layers": 6, "width": 256, "heads": 8, ...}, "training": {"length": 256, ...},
//    "test": {"blocks": 64, "share": 0.05, ...}, "text": ["book.txt", "folder"]}
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

// What is trained, on what.
struct TrainingPlan {
  Settings settings;
  Arm arm;
  std::vector<std::filesystem::path> text;  // empty: default_text()
};

// A file with every field there is and its default. Sizes that follow from others are null.
std::string example_plan();

// Throws Error that names the file, and a field that is unknown, of another type or out of range.
TrainingPlan read_plan(const std::filesystem::path& file);

struct TrainModelOptions {
  TrainingPlan plan;
  std::filesystem::path directory;  // --to
  std::vector<std::string> worker;  // the command that runs one arm, without the arm's folder
  std::string command;              // as the user gave it, for "go on with"
  bool own_text = true;  // not default_text(), which evaluate and extend read if none is said
};

enum class TrainEnd { kDone, kFailed, kStopped };

// The same again goes on where it stopped; other settings in the same directory are refused. Says
// how the model does on standard output, progress on standard error. Throws Error.
TrainEnd train_model(const TrainModelOptions& options);

}  // namespace sextant::lab
