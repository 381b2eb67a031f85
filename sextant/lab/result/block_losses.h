// Losses by block of text, and their means.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/lab/result/result.h"

namespace sextant::lab {

// The mean losses of each block at one length.
struct BlockLosses {
  std::vector<double> loss, sliding;
};

// The mean over blocks and its standard error; at least 2 values. Blocks are far enough apart to be
// independent.
Mean mean_of_blocks(std::span<const double> values);

// The mean of values[n] - reference[n] over blocks, and its standard error; both have at least 2.
Mean mean_difference(std::span<const double> values, std::span<const double> reference);

// One entry per length, from the losses of the same blocks at each; changes are against
// lengths[reference].
std::vector<AtLength> at_lengths(std::span<const int64_t> lengths,
                                 std::span<const BlockLosses> blocks, size_t reference);

}  // namespace sextant::lab
