// A survey: train each method on short sequences, test it on long ones, report where it breaks.
//
//   text files --corpus--> training bytes, test bytes         the same for every arm
//   arms = methods x seeds                                    arms/rope-0/arm.json
//     each in a worker process (schedule, worker, plugin):    libsextant_lab, with libtorch
//       train --checkpoint-NNN.sxt--> model.safetensors       durable: kill -9 costs seconds
//       test  --> result.json                                 the arm is done when this file exists
//   some result.json --> tables so far on standard error, report.html marked as partial
//   all result.json --> table on standard output, results.json, results.csv, charts, report.html
//
// A survey is stored in its directory, whose manifest has the settings that all arms share. Running
// the same command again resumes the survey, and other methods or seeds add arms. A command with
// other shared settings is refused, because its results could not be compared in one table. Arms of
// a seed share the initial weights except those of the method, the batches and their order, and the
// test bytes, so the method alone causes their differences.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/hand_out.h"

namespace sextant::lab {

struct SurveyOptions {
  Settings settings;
  std::vector<Arm> arms;
  std::vector<std::filesystem::path> text;
  std::filesystem::path directory;
  std::vector<std::string> worker;  // command that runs one arm, without the arm's folder
  std::string command;              // the user's command line, for "go on with" and the report
  int jobs = 1;
  bool dry_run = false;  // only print the plan
  HandOut hand_out = {};
};

// A requested method.
struct ArmRequest {
  std::string label;           // its name in tables
  std::string method;          // name of a method or a stretch
  std::string options = "{}";  // JSON object: options of the method, and of the survey (below)
};

// Parses "rope:base=1e6:dim=16"; the text becomes the label. VALUE is JSON, or else a string.
// Throws Error for an option of another form, and for one that is given twice; `where` begins the
// message.
ArmRequest request_of(const std::string& text, const std::string& where = "methods");

// A file of requests, in TOML if its name ends with .toml, else in JSON:
//   {"arms": ["alibi", {"label": "far", "method": "rope", "options": {"base": 1e6}}],
//    "settings": {"training": {"bytes": 400000}}}
// Its settings override those of the command line.
struct ArmsFile {
  std::vector<ArmRequest> arms;
  std::string settings = "{}";  // JSON object
};
// Throws Error that names the file and the field.
ArmsFile read_arms_file(const std::filesystem::path& path);
// The same for the content of a file.
ArmsFile arms_file_of(const nlohmann::json& content, const std::string& where);

// Returns the settings with some overridden by a JSON object: {"test": {"blocks": 16}}. Throws
// Error, whose text begins with `where`, for an unknown setting.
Settings laid_over(const Settings& settings, const std::string& json, const std::string& where);

// Options that every arm has by default.
struct ArmDefaults {
  int64_t memory = 0;
  int64_t tune = 0;  // steps; 0: no tuning
};

// Makes the arms of the requests. A method that is only tested (window, rerope, a stretch or
// another method that changes how a trained rope is applied) adds the arm that trains its weights.
// Options of the survey itself:
//   weights   the method or request whose weights are used: "rope" for any method that has rope's
//             parameters; "own" trains a method that would otherwise use other weights
//   causal    true: with masked bytes, attention to earlier positions only
//   two_streams  true: with masked bytes, a permutation language model (XLNet)
//   memory    positions; in the label if it comes from all.memory
//   tune      steps of further training at the longest length, from the weights that are used. With
//             all.tune each such arm, and the method that was trained, also gets a tuned copy.
//   drop_channels  channels of the vector added to the input that are zero in the test, drawn from
//             the seed. The weights are those of the same method with all channels.
// "alien-clock" stands for clock:system=alien.
// Values such as "L", "2L" or "L/4" are relative to the training length. Each request gives an arm
// for the survey's objective and, unless settings.retrieval.steps is 0 or the arm has a memory, one
// for its small task.
std::vector<Arm> make_arms(std::span<const ArmRequest> requests, int64_t seeds,
                           const Settings& settings, const ArmDefaults& all = {});
std::vector<Arm> make_arms(const std::vector<std::string>& methods, int64_t seeds,
                           const Settings& settings, const ArmDefaults& all = {});

// The arms, and after each one that is trained and whose method adds a vector to the input, arms
// with these numbers of its channels dropped. added_channels(arm) is the number of channels that
// the arm's method adds to. Throws Error for a number below 1.
std::vector<Arm> with_dropped_arms(std::span<const Arm> arms, std::span<const int64_t> counts,
                                   const std::function<int64_t(const Arm&)>& added_channels);

// The methods of a survey without a method list, by its objective. kCausal: some that are trained,
// and all stretches that are not dynamic. kMasked: five that are trained.
std::vector<std::string> default_methods(Objective objective);

// Stretches of a trained rope past its length, by factor = longest length / L: pi, ntk, yarn,
// rerope, window, ...
std::vector<std::string> stretches();

enum class SurveyEnd {
  kDone,
  kSomeFailed,
  kStopped,
  kIncomplete,  // other workers are at some arms, or a collected survey lacks some
};

// Prints the table on standard output once, at the end, and progress and intermediate tables on
// standard error. Throws Error.
SurveyEnd run_survey(const SurveyOptions& options);

}  // namespace sextant::lab
