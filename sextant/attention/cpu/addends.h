// What is added to the numbers of a product as they are stored, so that no pass of its own adds it.
#pragma once

#include <cstdint>

namespace sextant::cpu {

// Of row i and a block of kLanes columns: data + i * row_step.
struct Addend {
  const float* data;
  int64_t row_step;
};

// `count` of them for each block, at least one, added one after the other: those of block j are
// of_blocks[j * step] and so on. step: count, or 0 where all blocks have the same.
struct Addends {
  const Addend* of_blocks;
  int64_t count, step;
  int64_t row = 0;  // the product's first
};

}  // namespace sextant::cpu
