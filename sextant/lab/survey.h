// A survey: train each method on short text, test it on long text, show where it breaks.
//
//   text files --corpus--> training bytes, test bytes         the same for every arm
//   arms = methods x seeds                                    arms/rope-0/arm.json
//     each in a worker process (schedule, worker, plugin):    libsextant_lab, the half with libtorch
//       train --checkpoint-NNN.sxt--> model.safetensors       durable: kill -9 costs seconds
//       test  --> result.json                                 the arm is done when this is there
//   all result.json --> table, results.json, results.csv, charts, report.html
//
// A survey is its directory. Its manifest holds what all arms share; the same command again goes on
// where it stopped, one with other methods or seeds adds arms, and one that differs in anything
// shared is refused, for its numbers could not stand in one table. Arms of a seed share the start of
// all weights but the method's own, the batches and their order, and the bytes they are tested on, so
// their differences are the method's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sextant/lab/settings.h"

namespace sextant::lab {

struct SurveyOptions {
  Settings settings;
  std::vector<Arm> arms;
  std::vector<std::filesystem::path> text;
  std::filesystem::path directory;
  std::vector<std::string> worker;  // the command that runs one arm, without the arm's folder
  std::string command;              // as the user gave it, for "go on with" and the report
  int jobs = 1;
  bool dry_run = false;  // say what would be done
};

// What a person asks for -> arms. `methods`: "rope", or with options "rope:base=1e6:dim=16"; the text is
// the arm's label. A method that is only tested (window, rerope and others that change how a trained rope
// is read) brings the arm that trains its weights; "weights=rope" makes one of any method that has rope's
// parameters, "weights=own" trains one of those after all.
// "memory=128" is an option of every method; those that do not name it have `memory`, and say so in
// their label.
std::vector<Arm> make_arms(const std::vector<std::string>& methods, int64_t seeds,
                           const Settings& settings, int64_t memory = 0);

// The methods of a survey that names none.
std::vector<std::string> default_methods();

enum class SurveyEnd { kDone, kSomeFailed, kStopped };

// Prints the table on standard output, progress on standard error. Throws Error.
SurveyEnd run_survey(const SurveyOptions& options);

}  // namespace sextant::lab
