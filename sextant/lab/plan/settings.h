// The settings that a survey holds fixed (Settings) and the methods it compares (Arm), as data: the
// manifest of a run.
//
// Everything that can change a result is here and is stored with the results. Other options, such
// as the number of workers or the interval between checkpoints, are not here.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sextant/models/decoder/decoder_options.h"

namespace sextant::lab {

// Names of devices that the laboratory computes on: "cpu", "cuda" (the first GPU), "cuda:1".
inline constexpr const char* kCpu = "cpu";

// Throws Error for another name. Whether the machine has the device: see device.h of lab/torch.
void check_device_name(const std::string& name);

// Of a device that has a name: 0 for "cpu" and "cuda".
int device_index(const std::string& name);

struct TrainingOptions {
  int64_t length = 128;         // L: sequence length in training
  int64_t bytes = 800'000;      // total, in steps of batch * length
  int64_t batch = 8;            // small batches train better: 3.49 nats, against 3.92 with 32
  double learning_rate = 4e-3;  // peak
  double warmup = 0.05;         // share of the steps with a rising rate; a half cosine to 0 follows
  double beta1 = 0.9, beta2 = 0.98;
  double weight_decay = 0.1;  // of matrices only
  double clip = 1;            // maximum norm of the gradient

  int64_t steps() const { return bytes / (batch * length); }
};

struct TestOptions {
  std::vector<int64_t> lengths = {128, 256, 512, 1024};  // in rising order, with L among them
  int64_t blocks = 64;  // of the longest length; every length is scored on the same bytes
  int64_t bin = 16;     // positions averaged in "loss against position"
  double share = 0.05;  // held-out share of the text

  int64_t longest() const { return lengths.back(); }
};

// The small task: one-hop retrieval or direction (both retrieval_task.h), with a smaller
// model than for text. A model learns retrieval in 400 steps with every encoding. The
// heads, norm, activation and the remaining training options are those of the text model.
struct RetrievalOptions {
  int64_t steps = 400;  // 0: no small task
  int64_t batch = 64;
  int64_t length = 64;  // L of this training
  double learning_rate = 3e-3;
  int64_t layers = 2;
  int64_t width = 64;
  std::vector<int64_t> lengths = {64, 128, 256, 512};  // tested, in rising order, `length` first
  int64_t texts = 128;                                 // sequences for each length and distance

  int64_t longest() const { return lengths.back(); }
};

// The objective of training on text: the next byte, or masked bytes with attention in both
// directions (masked_text.h).
enum class Objective { kCausal, kMasked };
const char* name(Objective objective);               // "causal", "masked"
Objective objective_named(const std::string& name);  // throws Error that lists these names

// On text, by objective: kText, kMasked. Beside each a small task: retrieval (kPairs), direction
// (kDirection, retrieval_task.h).
enum class Task { kText, kPairs, kMasked, kDirection };
const char* name(Task task);  // "text", "pairs", "masked", "direction"
bool is_on_text(Task task);   // kText or kMasked

struct Settings {
  Objective objective = Objective::kCausal;
  DecoderOptions model;
  TrainingOptions training;
  TestOptions test;
  RetrievalOptions retrieval;
  int threads = 1;  // per worker; the split of matrix products changes their last bits
  // Of trainings and tests (kCpu); sums of unlike devices differ in their last bits.
  std::string device = kCpu;
};

// The two tasks of an objective.
Task text_task(const Settings& settings);
Task small_task(const Settings& settings);

// The bytes that sliding losses score: "last 64 bytes", or "middle 64 bytes" of masked ones.
std::string scored_bytes(const Settings& settings);

// The model of a task, its training (`bytes` are tokens of small tasks), and the length of the
// longest sequence in its tests. Masked bytes and direction have attention in both directions.
DecoderOptions model_of(const Settings& settings, Task task);
TrainingOptions training_of(const Settings& settings, Task task);
int64_t longest_of(const Settings& settings, Task task);

// The tested distances in a sequence of this length: L/8, L/4, ... up to half the length, and
// length - L/8.
std::vector<int64_t> distances_in(int64_t length, const RetrievalOptions& options);

// The distances that tests of a small task ask for: distances_in() for kPairs; for kDirection those
// from a mark to its cues, 1 to kMostGap.
std::vector<int64_t> asked_distances(Task task, int64_t length, const RetrievalOptions& options);

// The two distances in reports: the largest one that is tested up to half of the training length,
// and the beginning of a sequence.
int64_t near_distance(const RetrievalOptions& options);
int64_t far_distance(int64_t length, const RetrievalOptions& options);

// A unit of work: a method trained from a seed, or tested with the weights of another arm.
struct Arm {
  std::string label;    // its name in tables: "rope"
  std::string method;   // name in the registry
  std::string options;  // JSON object
  uint64_t seed = 0;
  int64_t memory = 0;        // cached positions of earlier segments, in training and test; 0: none
  std::string weights_from;  // name of the arm whose weights it is tested with; empty for its own
  Task task = Task::kText;
  int64_t tune = 0;           // steps of further training at the longest length, from those weights
  int64_t drop_channels = 0;  // channels of the added vector that are zero in the test; 0: none
  // kMasked: a permutation language model with XLNet's two streams
  bool two_streams = false;
  bool causal = false;  // kMasked and kDirection: attention sees earlier positions only

  bool trains() const { return weights_from.empty() || tune > 0; }
  // "rope-0", "rope-pairs-0", "rope-masked-0", "rope-direction-0"
  std::string name() const { return name_of(label, task, seed); }
  static std::string name_of(const std::string& label, Task task, uint64_t seed);
};

// The model of an arm.
DecoderOptions model_of(const Settings& settings, const Arm& arm);

// The training of an arm: from its initialisation, or from the weights of another arm at a quarter
// of the learning rate.
TrainingOptions training_of(const Settings& settings, const Arm& arm);

// Throws Error that names the option if a value is out of range or inconsistent with another.
void check(const Settings& settings);

// from_json() is strict and checks the values.
void to_json(nlohmann::json& json, const Settings& settings);
void from_json(const nlohmann::json& json, Settings& settings);
void to_json(nlohmann::json& json, const Arm& arm);
void from_json(const nlohmann::json& json, Arm& arm);
// Throws Error unless the label of an arm is a name without control characters: it is printed, and
// is part of the names of folders.
void check_label(const std::string& where, const std::string& label);

// The values of a JSON object with their paths, in its order: ("training.bytes", 800000).
using Leaves = std::vector<std::pair<std::string, nlohmann::json>>;
Leaves leaves_of(const nlohmann::json& object);

// One line for each value that differs: "training.bytes: 800000 there, 400000 asked for".
std::vector<std::string> differences(const nlohmann::json& there, const nlohmann::json& asked);

// The settings of surveys as a table with one row for each: its place in JSON, its range, and its
// option of `sextant survey`. JSON and checks (settings.cc) and the command (cli/survey.cc) follow
// the table. The objective, norm and activation, which are words, have no rows.

// Far above the needs of surveys that run for minutes; the product of two values does not overflow.
inline constexpr int64_t kMostSetting = int64_t{1} << 30;

// A setting of one Settings object.
struct Setting {
  struct Range {
    double low = 0, high = 0;
  };

  // The JSON object that has it: "training"; "" for that of all settings. DecoderOptions reads and
  // writes "model" by itself.
  std::string_view part;
  const char* name;
  std::variant<int*, int64_t*, double*, std::string*, std::vector<int64_t>*> member;
  std::optional<Range> range = {};    // empty: check(Settings) compares it with other settings
  const char* help = nullptr;         // of its option; null: the command has none
  std::optional<int64_t> smoke = {};  // its value in a survey that only tries everything
  // Sets it by the settings that it follows from if it is not given.
  void (*follow)(Settings& settings) = nullptr;

  std::string option() const;  // "--learning-rate", "--retrieval-batch"
};

// In the order of the command's help.
std::vector<Setting> settings_table(Settings& settings);

}  // namespace sextant::lab
