// What `sextant evaluate` and `sextant extend` ask of the half with libtorch, and what it answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sextant/lab/report/result.h"

namespace sextant::lab {

inline constexpr int64_t kFewestBlocks = 2;  // an error of a mean needs two

// How a model in a folder is read and what on.
struct EvaluationRequest {
  std::filesystem::path model;
  std::vector<std::filesystem::path> text;
  double share = 1;  // of the text, the part that a training with this test.share holds out; 1: all
  std::vector<int64_t> lengths;  // rising, divisors of the last
  int64_t blocks = 0;  // of the longest length, evenly spread; 0: as many as there are, at most 64
  int64_t stride = 0;  // bytes scored at the end of a window; 0: half of L
};

// Is told of blocks done and in all; ends the work by throwing.
using OnBlock = std::function<void(int64_t done, int64_t total)>;

struct ModelEvaluation {
  std::string method, options;  // JSON object
  int64_t train_length = 0, memory = 0, weights = 0;
  int64_t blocks = 0, stride = 0;
  std::vector<AtLength> lengths;  // changes: against L if it is among them, else against the first
  int64_t reference = 0;          // that length
};

// A way to read a trained rope past its length.
struct StretchCandidate {
  std::string name;              // "yarn"
  std::string summary;           // "YaRN: ... (Peng et al. 2023)"
  std::string method;            // in the registry
  std::string options;           // JSON object
  bool in_hugging_face = false;  // config.json of the model's architecture can say it
};

struct MeasuredCandidate {
  StretchCandidate candidate;
  std::vector<AtLength> lengths;  // changes: minus the model as it is at L
  Mean behind;  // the sliding loss at the longest length minus the lowest of all ways
};

struct Extension {
  ModelEvaluation model;  // as it is
  std::vector<MeasuredCandidate> candidates;
};

}  // namespace sextant::lab
