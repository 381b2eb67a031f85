// Which rows of a sequence each rank holds, and rows of all ranks together.
//
// Of a sequence of 2 P chunks, P ranks hold
//
//   contiguous   rank r: chunks 2r, 2r + 1
//   zigzag       rank r: chunks r, 2P - 1 - r
//
// With the causal mask, a late query sees more keys than an early one. In zigzag order all ranks
// have as much to compute; in contiguous order the last one has almost twice the average.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "sextant/torch/group.h"

namespace sextant {

enum class Shards { kZigzag, kContiguous };

// "zigzag" or "contiguous". Throws Error for another name.
Shards shards_of(std::string_view name);

// Consecutive positions.
struct Positions {
  int64_t first = 0, count = 0;

  int64_t end() const { return first + count; }
};

// The positions of a rank's rows, in the order of its rows. Throws Error if the rows cannot be
// divided so.
std::vector<Positions> positions_of_shard(Shards shards, int64_t rank, int64_t size, int64_t rows);

// The rows of all ranks in the order of their positions, along a dimension of x. Each rank gives
// its own rows and gets the same result. The gradient of x sums those of all ranks.
at::Tensor unsharded(const at::Tensor& x, int64_t dim, Shards shards, const Group& group);

}  // namespace sextant
