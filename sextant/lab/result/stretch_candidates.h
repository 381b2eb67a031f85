// All candidates for using a trained rope past its training length, and the choice among them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sextant/lab/result/interval.h"
#include "sextant/lab/result/model_work.h"

namespace sextant::lab {

// The candidates for a rope with these options (a JSON object, whose stretch is ignored), trained
// at length L and used on sequences of `length`: the unchanged rope first, then every stretch and
// every piecewise rotation.
std::vector<StretchCandidate> stretch_candidates(const std::string& rope_options,
                                                 int64_t train_length, int64_t length);

struct Recommendation {
  size_t best = 0;                      // index into Extension::candidates
  std::optional<size_t> writable = {};  // the best candidate that config.json can express
  // A candidate that may be as good as the best: the 95 % interval of the difference, paired over
  // blocks, contains zero.
  struct Tie {
    size_t candidate = 0;
    MeanInterval behind;  // loss at the longest length plus the loss it costs at L
  };
  std::vector<Tie> ties;  // the smallest difference first
  std::string reason;     // a sentence with the numbers, also of ties
};

// Recommends the candidate with the lowest loss at the longest length, plus the loss that it costs
// at L, among the candidates that see the whole sequence. A window has a low loss, too, but each
// layer attends no further back than before. The rule of surveys differs (advice.h) in two points:
// `sextant extend` measures no retrieval, so it excludes forgetting methods by their kind alone;
// and the model goes on to serve short sequences, so the loss at L counts as much.
Recommendation recommend(const Extension& extension);

// The candidates that see the whole sequence by the same criterion, the best first.
std::vector<size_t> best_first(const Extension& extension);

}  // namespace sextant::lab
