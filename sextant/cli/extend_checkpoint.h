// `sextant extend` for a checkpoint: a folder in Hugging Face's format or a GGUF file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sextant/cli/evaluation_options.h"
#include "sextant/lab/result/stretch_candidates.h"

namespace sextant::cli {

struct ExtendOptions {
  std::shared_ptr<EvaluationOptions> evaluation;
  int64_t length = 0;
  std::string write, choose;
  std::vector<std::string> candidates;  // of a checkpoint
};

// Measures the candidates, prints the table, the recommendation and the words for engines, and
// writes charts and words to the folder of the measurement.
void extend_checkpoint(const ExtendOptions& options);

// Throws Error that lists the candidates if --choose names none of them.
void check_choice(const ExtendOptions& options,
                  const std::vector<lab::StretchCandidate>& candidates);

// The chosen candidate, or the best one that config.json can express, else the best.
const lab::StretchCandidate& candidate_to_write(const ExtendOptions& options,
                                                const lab::Extension& extension,
                                                const lab::Recommendation& recommendation);

// Throws Error if the folder to write is the model's own, or cannot be written.
void check_folders(const ExtendOptions& options);

}  // namespace sextant::cli
