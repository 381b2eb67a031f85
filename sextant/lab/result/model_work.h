// Requests and results that `sextant evaluate` and `sextant extend` exchange with the libtorch
// plugin.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/result/result.h"

namespace sextant::lab {

inline constexpr int64_t kFewestBlocks = 2;  // the standard error of a mean needs two

// A model folder, and the text and lengths on which the model is evaluated.
struct EvaluationRequest {
  std::filesystem::path model;
  std::vector<std::filesystem::path> text;
  double share = 1;  // of the text: the part that a training with this test.share holds out; 1: all
  std::vector<int64_t> lengths;  // in rising order, divisors of the last
  int64_t blocks = 0;            // of the longest length, evenly spread; 0: all, at most 64
  int64_t stride = 0;            // bytes scored in each window; 0: half of L
  // Channels of the vector that the method adds to the input, set to zero; 0: none. They are drawn
  // from the seed.
  int64_t drop_channels = 0;
  uint64_t drop_seed = 0;
  std::string device = kCpu;  // of the computation (plan/settings.h)
};

// Receives the blocks done and the total; it ends the work by throwing.
using OnBlock = std::function<void(int64_t done, int64_t total)>;

// Losses by position in the longest sequences.
struct ByPosition {
  int64_t bin = 0;              // positions of a bin
  std::vector<Mean> loss = {};  // over blocks, of each bin
};

struct ModelEvaluation {
  std::string method, options;  // JSON object
  int64_t train_length = 0, memory = 0, weights = 0;
  int64_t drop_channels = 0;
  uint64_t drop_seed = 0;  // of the channels
  int64_t blocks = 0, stride = 0;
  bool masked = false;            // the model predicts masked bytes
  std::vector<AtLength> lengths;  // changes are against L if it was tested, else the first length
  int64_t reference = 0;          // the length that changes are against
  std::string unit = "byte";      // what a model predicts, and what lengths count: or "token"
  double bytes_per_token = 1;     // of the tokens at the ends of blocks, which `sliding` scores
  ByPosition by_position = {};
};

// A method that uses the weights of a trained rope past its training length.
struct StretchCandidate {
  std::string name = {};         // "yarn"
  std::string summary = {};      // "YaRN: ... (Peng et al. 2023)"
  std::string method = {};       // name in the registry
  std::string options = {};      // JSON object
  bool in_hugging_face = false;  // config.json can express it for the model's architecture
};

struct MeasuredCandidate {
  StretchCandidate candidate;
  std::vector<AtLength> lengths = {};  // changes are against the unchanged model at L
  Mean behind = {};  // sliding loss at the longest length, minus the lowest of all candidates
  ByPosition by_position = {};
  double seconds = 0;  // of all its forward passes; 0: not known
};

struct Extension {
  ModelEvaluation model;  // unchanged
  std::vector<MeasuredCandidate> candidates = {};
};

}  // namespace sextant::lab
