// How well a decoder predicts text at several lengths, every length scored on the same bytes.
//
//   a block of T = longest bytes, at length T/4:   |....|....|....|....|     each piece a text of
//   its own loss     mean over all bytes                   |xxxx|xxxx|xxxx|xxxx| sliding  the last
//   bytes, `stride` of them      |    |    |    |  xx|     a window of T/4 that ends there
//
// In pieces, the bytes at each piece's start lack context, so `loss` falls a little with length
// even for a model that uses nothing beyond L; `sliding` is the same bytes with ever more context.
//
// With memory a piece is read in segments of L, each with the memory of those before it: at length
// L there is none, and a memory of the longest length is the same as reading pieces at once.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/result.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::lab {

// The means of each block, at one length.
struct BlockLosses {
  std::vector<double> loss, sliding;
};

struct Evaluation {
  std::vector<AtLength> lengths;
  std::vector<double> loss_at;      // at the longest length, by bin of positions
  std::vector<BlockLosses> blocks;  // by length
};

// How a text is read: at once, or in segments with memory.
struct Reading {
  int64_t segment = 0;
  int64_t memory = 0;  // positions; 0: at once
};

struct Scoring {
  int64_t reference = 0;  // the length that changes are against, among those tested
  int64_t stride = 0;     // bytes scored at the end of a sliding window
  Reading reading = {};
};

// The mean of values[n] - reference[n] over blocks, and its standard error; both have at least 2.
Mean mean_difference(std::span<const double> values, std::span<const double> reference);

// Blocks of options.longest() + 1 bytes, as test_blocks() gives. on_block(n) is called after n
// blocks; it ends the evaluation by throwing.
Evaluation evaluate(const Decoder& decoder, std::span<const std::string_view> blocks,
                    const TestOptions& options, const Scoring& scoring,
                    const std::function<void(int64_t)>& on_block);

// As a survey does: against L, with a stride of L/2, and memory: positions, 0 for none.
Evaluation evaluate(const Decoder& decoder, std::span<const std::string_view> blocks,
                    const TestOptions& options, int64_t train_length, int64_t memory,
                    const std::function<void(int64_t)>& on_block);

// -log p of each byte of `block` but the first, cut into pieces of `length`.
std::vector<float> losses(const Decoder& decoder, std::string_view block, int64_t length,
                          const Reading& reading = {});

}  // namespace sextant::lab
