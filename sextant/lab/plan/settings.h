// What a survey holds fixed (Settings) and what it compares (Arm), as data: the manifest of a run.
//
// Everything that can change a number is here and is written down with the numbers. What cannot
// (how many workers, how often to save) is not.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/models/decoder/decoder_options.h"

namespace sextant::lab {

struct TrainingOptions {
  int64_t length = 128;     // L: positions seen in training
  int64_t bytes = 800'000;  // read in all, in steps of batch * length
  int64_t batch = 8;  // many small steps win by far: 3.49 nats against 3.92 with four times it
  double learning_rate = 4e-3;  // at its peak
  double warmup = 0.05;         // share of the steps in which it rises; then half a cosine to 0
  double beta1 = 0.9, beta2 = 0.98;
  double weight_decay = 0.1;  // of matrices
  double clip = 1;            // of the gradient's norm

  int64_t steps() const { return bytes / (batch * length); }
};

struct TestOptions {
  std::vector<int64_t> lengths = {128, 256, 512, 1024};  // rising; L is among them
  int64_t blocks = 64;  // texts of the longest length; every length is scored on the same bytes
  int64_t bin = 16;     // positions averaged in "loss against position"
  double share = 0.05;  // of the text, held out

  int64_t longest() const { return lengths.back(); }
};

// One-hop retrieval (retrieval_task.h), learned by a model smaller than the one that reads text:
// this one learns it in 400 steps with every encoding. Heads, norm, activation and what is not said
// here of the training are the text model's.
struct RetrievalOptions {
  int64_t steps = 400;  // 0: no retrieval
  int64_t batch = 64;
  int64_t length = 64;  // L of this training
  double learning_rate = 3e-3;
  int64_t layers = 2;
  int64_t width = 64;
  std::vector<int64_t> lengths = {64, 128, 256, 512};  // tested; rising, `length` among them
  int64_t texts = 128;                                 // of each length and distance

  int64_t longest() const { return lengths.back(); }
};

struct Settings {
  DecoderOptions model;
  TrainingOptions training;
  TestOptions test;
  RetrievalOptions retrieval;
  int threads = 1;  // of one worker's matrix products: how they are cut changes their last bits
};

enum class Task { kText, kPairs };

// What an arm of a task is: its model, its training (`bytes` are tokens), the longest text that it
// reads in tests.
DecoderOptions model_of(const Settings& settings, Task task);
TrainingOptions training_of(const Settings& settings, Task task);
int64_t longest_of(const Settings& settings, Task task);

// The distances at which a text of this length is asked: L/8, L/4, ... up to half of it, and L/8
// before its end.
std::vector<int64_t> distances_in(int64_t length, const RetrievalOptions& options);

// One unit of work: a method trained from a seed, or tested on what another arm trained.
struct Arm {
  std::string label;    // what tables call it: "rope"
  std::string method;   // its name in the registry
  std::string options;  // JSON object
  uint64_t seed = 0;
  int64_t memory = 0;        // positions of the segments before, in training and test; 0: none
  std::string weights_from;  // name of the arm whose weights it is tested with; empty: its own
  Task task = Task::kText;
  int64_t tune = 0;  // steps of more training on texts of the longest length, from those weights

  bool trains() const { return weights_from.empty() || tune > 0; }
  // "rope-0", "rope-pairs-0"
  std::string name() const { return name_of(label, task, seed); }
  static std::string name_of(const std::string& label, Task task, uint64_t seed) {
    return label + (task == Task::kPairs ? "-pairs-" : "-") + std::to_string(seed);
  }
};

// How it is trained: from its start, or on from the weights of another at a quarter of the learning
// rate.
TrainingOptions training_of(const Settings& settings, const Arm& arm);

// Throws Error that names the option if values are out of range or do not fit each other.
void check(const Settings& settings);

// Reading is strict, and checks.
void to_json(nlohmann::json& json, const Settings& settings);
void from_json(const nlohmann::json& json, Settings& settings);
void to_json(nlohmann::json& json, const Arm& arm);
void from_json(const nlohmann::json& json, Arm& arm);

// "training.bytes: 800000 there, 400000 asked for", one line for each value that differs.
std::vector<std::string> differences(const nlohmann::json& there, const nlohmann::json& asked);

}  // namespace sextant::lab
