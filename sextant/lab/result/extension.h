// Compares the candidates of `sextant extend` by their losses on the same blocks.
#pragma once

#include <vector>

#include "sextant/lab/result/block_losses.h"
#include "sextant/lab/result/model_work.h"

namespace sextant::lab {

struct CandidateLosses {
  StretchCandidate candidate;
  std::vector<BlockLosses> blocks;  // one per length of the model
  ByPosition by_position = {};
  double seconds = 0;  // of all its forward passes; 0: not known
};

// model: the unchanged model, whose losses are those of the first candidate; its reference is the
// training length.
Extension extension_of(ModelEvaluation model, const std::vector<CandidateLosses>& losses);

}  // namespace sextant::lab
