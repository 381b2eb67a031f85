// Losses by block of text, their means, and the records that a measurement makes of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/result/model_work.h"
#include "sextant/lab/result/result.h"

namespace sextant {
class JsonFields;
}

namespace sextant::lab {

// The mean losses of each block at one length.
struct BlockLosses {
  std::vector<double> loss, sliding;
};

// The mean over blocks and its standard error; at least 2 values. Blocks are far enough apart to be
// independent.
Mean mean_of_blocks(std::span<const double> values);

// One entry per length, from the losses of the same blocks at each; changes are against
// lengths[reference].
std::vector<AtLength> at_lengths(std::span<const int64_t> lengths,
                                 std::span<const BlockLosses> blocks, size_t reference);

// Compares the candidates of `sextant extend` by their losses on the same blocks.
struct CandidateLosses {
  StretchCandidate candidate;
  std::vector<BlockLosses> blocks = {};  // one per length of the model
  ByPosition by_position = {};
  double seconds = 0;  // of all its forward passes; 0: not known
};

// model: the unchanged model, whose losses are those of the first candidate; its reference is the
// training length.
Extension extension_of(ModelEvaluation model, const std::vector<CandidateLosses>& losses);

// Calls take() with the fields of each record of a measurement, one JSON object per line
// (python/sextant/measure/arm.py). An Error begins with `where` and the line.
void for_each_record(const std::string& text, const std::string& where,
                     const std::function<void(const JsonFields&)>& take);

// The losses of one sequence of a measurement of "losses".
struct LossRecord {
  int64_t length = 0;
  size_t block = 0;
  std::vector<double> nats, tokens;                       // by bin of positions; of equal sizes
  double last_nats = 0, last_tokens = 0, last_bytes = 0;  // of the end that a window scores
  double seconds = 0;
};

// Throws Error unless the length is one of `lengths` and the block below `blocks`.
LossRecord loss_record(const JsonFields& fields, const std::vector<int64_t>& lengths,
                       int64_t blocks);

}  // namespace sextant::lab
