// How well a decoder predicts text at several lengths, every length scored on the same bytes.
//
//   a block of T = longest bytes, at length T/4:   |....|....|....|....|     each piece a text of its own
//   loss     mean over all bytes                   |xxxx|xxxx|xxxx|xxxx|
//   sliding  the last L/2 bytes of the block       |    |    |    |  xx|     a window of T/4 that ends there
//
// In pieces, the bytes at each piece's start lack context, so `loss` falls a little with length even
// for a model that uses nothing beyond L; `sliding` is the same bytes with ever more context.
//
// With memory a piece is read in segments of L, each with the memory of those before it: at length L
// there is none, and a memory of the longest length is the same as reading pieces at once.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "sextant/lab/result.h"
#include "sextant/lab/settings.h"
#include "sextant/models/decoder.h"

namespace sextant::lab {

struct Evaluation {
  std::vector<AtLength> lengths;
  std::vector<double> loss_at;  // at the longest length, by bin of positions
};

// How a text is read: at once, or in segments with memory.
struct Reading {
  int64_t segment = 0;
  int64_t memory = 0;  // positions; 0: at once
};

// Blocks of options.longest() + 1 bytes, as test_blocks() gives; memory: positions, 0 for none.
// on_block(n) is called after n blocks; it ends the evaluation by throwing.
Evaluation evaluate(const Decoder& decoder, std::span<const std::string_view> blocks,
                    const TestOptions& options, int64_t train_length, int64_t memory,
                    const std::function<void(int64_t)>& on_block);

// -log p of each byte of `block` but the first, cut into pieces of `length`.
std::vector<float> losses(const Decoder& decoder, std::string_view block, int64_t length,
                          const Reading& reading = {});

}  // namespace sextant::lab
