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
// A survey is its directory. Its manifest holds what all arms share; the same command again goes on
// where it stopped, one with other methods or seeds adds arms, and one that differs in anything
// shared is refused, for its numbers could not stand in one table. Arms of a seed share the start of
// all weights but the method's own, the batches and their order, and the bytes they are tested on, so
// their differences are the method's.
#pragma once

#include <filesystem>
#include <span>
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

// What a person asks for.
struct ArmRequest {
  std::string label;           // what tables will call it
  std::string method;          // a method's name, or a stretch's
  std::string options = "{}";  // JSON object: the method's, and the survey's, below
};

// "rope:base=1e6:dim=16" -> a request; the text is its label. VALUE is JSON, or plain words.
ArmRequest request_of(const std::string& text);

// A file of requests, in JSON or, named *.toml, in TOML: {"arms": ["alibi", {"label": "far", "method": "rope", "options": {"base": 1e6}}],
// "settings": {"training": {"bytes": 400000}}}; settings are laid over those that were asked for otherwise.
struct ArmsFile {
  std::vector<ArmRequest> arms;
  std::string settings = "{}";  // JSON object
};
// Throws Error that names the file and the field.
ArmsFile read_arms_file(const std::filesystem::path& path);

// Settings with those of a JSON object in their place: {"test": {"blocks": 16}}. Throws Error, which begins
// with `where`, for one that there is not.
Settings laid_over(const Settings& settings, const std::string& json, const std::string& where);

// What holds for every arm that does not say otherwise.
struct ForAll {
  int64_t memory = 0;
  int64_t tune = 0;  // steps; 0: nothing is tuned
};

// Requests -> arms. A method that is only tested (window, rerope, a stretch, and others that change how a trained
// rope is read) brings the arm that trains its weights. Options that are the survey's own:
//   weights   of which method or request they are: "rope" reads rope's by any method that has its parameters;
//             "own" trains what otherwise reads another's
//   memory    positions; said in the label where all.memory says it
//   tune      steps of more training on texts of the longest length, from the weights that are read. With
//             all.tune each reading has a twin that was tuned, and so has the method that was trained.
// Values such as "L", "2L" or "L/4" follow the training length. Of each there is an arm for text and, unless
// settings.retrieval.steps is 0, one for pairs; what has a memory has none.
std::vector<Arm> make_arms(std::span<const ArmRequest> requests, int64_t seeds,
                           const Settings& settings, const ForAll& all = {});
std::vector<Arm> make_arms(const std::vector<std::string>& methods, int64_t seeds,
                           const Settings& settings, const ForAll& all = {});

// The methods of a survey that names none: some that are trained, and the stretches but the dynamic ones.
std::vector<std::string> default_methods();

// Ways to read a trained rope past its length, by factor = longest text / L: pi, ntk, yarn, rerope, window, ...
std::vector<std::string> stretches();

enum class SurveyEnd { kDone, kSomeFailed, kStopped };

// Prints the table on standard output once, at the end; progress and the tables so far on standard
// error. Throws Error.
SurveyEnd run_survey(const SurveyOptions& options);

}  // namespace sextant::lab
