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

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/files/json_fields.h"
#include "sextant/lab/run/arm_process.h"
#include "sextant/lab/run/hand_out.h"

namespace sextant::lab {

inline constexpr const char* kMeasuredFile = "done.json";

struct MeasuredArm {
  std::string name;
  nlohmann::json assignment;  // of arm.json, see python/sextant/measure/arm.py
};

struct Measurement {
  std::string command;  // "extend", for messages
  std::filesystem::path folder;
  nlohmann::json manifest;  // what decides the records; the version is added
  std::vector<MeasuredArm> arms = {};
  HandOut hand_out = {};
};

enum class MeasureEnd {
  kDone,
  kStopped,     // by a signal; what was measured is kept
  kPrepared,    // the stage was kPrepare
  kIncomplete,  // other workers are at some arms, or a collected measurement lacks some
};

// Runs the arms that are not done, with progress on standard error: all in one worker, which loads
// the model once, or each by the launcher. Throws Error with the worker's reason if it failed, or
// if the folder holds another measurement.
MeasureEnd run_measurement(const Measurement& measurement);

// Calls take() with each record of an arm, in the order in which they were made; it returns whether
// the record is the first of what it measures. Throws Error unless `count` are.
void for_each_record(const Measurement& measurement, const MeasuredArm& arm, int64_t count,
                     const std::function<bool(const JsonFields&)>& take);

// The content of an arm's done.json.
struct MeasuredFacts {
  nlohmann::json all;   // null if the arm is not done
  std::string machine;  // empty if it does not say it
  int64_t weights = 0;  // 0 if it does not say it
};
MeasuredFacts facts_of(const Measurement& measurement, const MeasuredArm& arm);

// Whether FOLDER/arm.json is an assignment of a measurement.
bool is_measured_arm(const std::filesystem::path& folder);

// Runs the arms in a child process of Python and returns its exit status. Throws Error if it
// cannot.
int run_measured_arms(const std::vector<std::string>& folders, const ArmProcess& process,
                      const Watch& watch);

}  // namespace sextant::lab
