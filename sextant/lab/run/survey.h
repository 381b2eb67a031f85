// A survey: train each method on short text, test it on long text, show where it breaks.
//
//   text files --corpus--> training bytes, test bytes         the same for every arm
//   arms = methods x seeds                                    arms/rope-0/arm.json
//     each in a worker process (schedule, worker, plugin):    libsextant_lab, with libtorch
//       train --checkpoint-NNN.sxt--> model.safetensors       durable: kill -9 costs seconds
//       test  --> result.json                                 the arm is done when this is there
//   some result.json --> table so far on standard error, report.html marked as partial
//   all result.json --> table on standard output, results.json, results.csv, charts, report.html
//
// A survey is its directory. Its manifest has the settings that all arms share. The same command
// goes on where the last one stopped, one with other methods or seeds adds arms, and one that
// differs in anything shared is refused, since its numbers could not stand in one table. Arms of a
// seed share the start of all weights but the method's own, the batches and their order, and the
// bytes they are tested on, so that their differences are the method's.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"

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

// A requested method.
struct ArmRequest {
  std::string label;           // what tables will call it
  std::string method;          // a method's name, or a stretch's
  std::string options = "{}";  // JSON object: the method's, and the survey's, below
};

// "rope:base=1e6:dim=16" -> a request; the text is its label. VALUE is JSON, or plain words.
ArmRequest request_of(const std::string& text);

// A file of requests, in JSON or, named *.toml, in TOML:
//   {"arms": ["alibi", {"label": "far", "method": "rope", "options": {"base": 1e6}}],
//    "settings": {"training": {"bytes": 400000}}}
// Its settings override those of the command line.
struct ArmsFile {
  std::vector<ArmRequest> arms;
  std::string settings = "{}";  // JSON object
};
// Throws Error that names the file and the field.
ArmsFile read_arms_file(const std::filesystem::path& path);

// Settings overridden by those of a JSON object: {"test": {"blocks": 16}}. Throws Error, which
// begins with `where`, for an unknown one.
Settings laid_over(const Settings& settings, const std::string& json, const std::string& where);

// Defaults of every arm.
struct ArmDefaults {
  int64_t memory = 0;
  int64_t tune = 0;  // steps; 0: nothing is tuned
};

// Requests -> arms. A method that is only tested (window, rerope, a stretch and others that change
// how a trained rope is applied) brings the arm that trains its weights. Options of the survey
// itself:
//   weights   the method or request whose weights are used: "rope" for any method that has rope's
//             parameters; "own" trains a method that otherwise uses another's
//   memory    positions; shown in the label where it comes from all.memory
//   tune      steps of more training on sequences of the longest length, from the weights that are
//             used. With all.tune each such arm has a twin that was tuned, and so has the method
//             that was trained.
// Values such as "L", "2L" or "L/4" follow the training length. Each request gives an arm for text
// and, unless settings.retrieval.steps is 0 or it has a memory, one for pairs.
std::vector<Arm> make_arms(std::span<const ArmRequest> requests, int64_t seeds,
                           const Settings& settings, const ArmDefaults& all = {});
std::vector<Arm> make_arms(const std::vector<std::string>& methods, int64_t seeds,
                           const Settings& settings, const ArmDefaults& all = {});

// The methods of a survey that names none: some that are trained, and all stretches that are not
// dynamic.
std::vector<std::string> default_methods();

// Stretches of a trained rope past its length, by factor = longest length / L: pi, ntk, yarn,
// rerope, window, ...
std::vector<std::string> stretches();

enum class SurveyEnd { kDone, kSomeFailed, kStopped };

// Prints the table on standard output once, at the end; progress and the tables so far on standard
// error. Throws Error.
SurveyEnd run_survey(const SurveyOptions& options);

}  // namespace sextant::lab
