// Losses of a decoder on text at several lengths, with every length scored on the same bytes.
//
//   a block of T = longest bytes, at length T/4:   |....|....|....|....|  each piece a sequence
//   loss     mean over all bytes                   |xxxx|xxxx|xxxx|xxxx|
//   sliding  the last `stride` bytes of the block  |    |    |    |  xx|  end of a window of T/4
//
// The bytes at the start of each piece lack context, so `loss` falls a little with length even for
// a model that uses nothing beyond L; `sliding` scores the same bytes with more and more context.
//
// A model of masked bytes sees both directions, so its windows grow on both sides: `sliding` scores
// the `stride` bytes in the middle of the block, in kMaskPasses passes that hide each of them once,
// and `loss` scores the seventh of the bytes that one pass hides (masked_text.h).
//
// With memory a piece is processed in segments of L, each with the memory of the earlier segments.
// At length L there is no memory, and a memory of the longest length is equivalent to processing
// pieces at once.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/result/block_losses.h"
#include "sextant/lab/result/result.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::lab {

struct Evaluation {
  std::vector<AtLength> lengths;
  std::vector<double> loss_at;      // at the longest length, by bin of positions
  std::vector<BlockLosses> blocks;  // one per length
};

// How a piece is processed: at once, or in segments with memory.
struct Reading {
  int64_t segment = 0;
  int64_t memory = 0;  // positions; 0: at once
};

struct Scoring {
  int64_t reference = 0;  // the length that changes are against; one of the tested ones
  int64_t stride = 0;     // bytes scored at the end of a sliding window
  Reading reading = {};
  bool masked = false;  // the model predicts masked bytes
};

// The blocks have options.longest() + 1 bytes, as from test_blocks(). on_block(n) is called after n
// blocks; it ends the evaluation by throwing.
Evaluation evaluate(const Decoder& decoder, std::span<const std::string_view> blocks,
                    const TestOptions& options, const Scoring& scoring,
                    const std::function<void(int64_t)>& on_block);

// Whether a model was trained on masked bytes: its vocabulary has the two tokens of masked_text.h.
bool predicts_masked_bytes(const DecoderOptions& model);

// The scoring of surveys: changes against L, a stride of L/2. memory: positions, 0 for none.
Scoring survey_scoring(int64_t train_length, int64_t memory, bool masked = false);

// -log p of each byte of `block` except the first. The block is cut into pieces of `length`.
std::vector<float> losses(const Decoder& decoder, std::string_view block, int64_t length,
                          const Reading& reading = {});

// Accuracy of a model on its small task, by sequence length and distance: retrieval, or direction.

// Tests options.texts sequences for each length and each of asked_distances(), the same for every
// model. task: kPairs or kDirection. on_distance(n, total) is called after each distance; it ends
// the test by throwing.
std::vector<AtDistance> accuracies(const Decoder& decoder, Task task,
                                   const RetrievalOptions& options,
                                   const std::function<void(int64_t, int64_t)>& on_distance);

}  // namespace sextant::lab
