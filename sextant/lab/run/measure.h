// Measurements of checkpoints in Hugging Face's format or GGUF: arms that a Python worker runs
// (python/sextant/measure), which loads the model with transformers.
//
// A measurement lives in a folder, so that it can be interrupted and resumed:
//
//   manifest.json             what is measured; another request there is refused
//   arms/NAME/arm.json        the assignment of an arm
//   arms/NAME/records.jsonl   its records, one JSON object per line, as they are made
//   arms/NAME/done.json       when all records are there: versions and sizes
//   log.txt                   the worker's output
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sextant::lab {

struct MeasuredArm {
  std::string name;
  nlohmann::json assignment;  // of arm.json, see python/sextant/measure/arm.py
};

struct Measurement {
  std::string command;  // "extend", for messages
  std::filesystem::path folder;
  nlohmann::json manifest;  // what decides the records; the version is added
  std::vector<MeasuredArm> arms;
};

// Runs the arms that are not done, in one worker, with progress on standard error. Returns false if
// a signal stopped it; what was measured is kept. Throws Error with the worker's reason if it
// failed, or if the folder holds another measurement.
bool run_measurement(const Measurement& measurement);

// The records of an arm in the order in which they were made, and its done.json; empty and null if
// there are none.
std::vector<nlohmann::json> records_of(const Measurement& measurement, const MeasuredArm& arm);
nlohmann::json facts_of(const Measurement& measurement, const MeasuredArm& arm);

// Whether FOLDER/arm.json is an assignment of a measurement.
bool is_measured_arm(const std::filesystem::path& folder);

// Replaces this process by Python, which runs the arms. Throws Error if it cannot.
[[noreturn]] void become_measurement(const std::vector<std::string>& folders);

}  // namespace sextant::lab
