// What a survey holds fixed (Settings) and what it compares (Arm), as data: the manifest of a run.
//
// Everything that can change a number is here and is written down with the numbers. What cannot
// (how many workers, how often to save) is not.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/models/decoder_options.h"

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

struct Settings {
  DecoderOptions model;
  TrainingOptions training;
  TestOptions test;
  int threads = 1;  // of one worker's matrix products: how they are cut changes their last bits
};

// One unit of work: a method trained from a seed, or tested on what another arm trained.
struct Arm {
  std::string label;    // what tables call it: "rope"
  std::string method;   // its name in the registry
  std::string options;  // JSON object
  uint64_t seed = 0;
  int64_t memory = 0;        // positions of the segments before, in training and test; 0: none
  std::string weights_from;  // name of the arm whose weights it is tested with; empty: its own

  std::string name() const { return label + "-" + std::to_string(seed); }
};

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
