// What is added to the numbers of a product as they are stored, so that no pass of its own adds it.
#pragma once

#include <cstdint>

namespace sextant::cpu {

// Of row i and kLanes columns, block j: data + i * row_step + j * block_step.
struct EpilogueTerm {  // without defaults, so that lists of them are not written before they are
                       // filled
  const float* data;
  int64_t row_step, block_step;
};

// `count` of them for each block, at least one, added one after the other: those of block j are
// of(j)[0] and so on. step: count, or 0 where there is one for all blocks, which its block_step
// tells apart.
struct EpilogueTerms {
  const EpilogueTerm* of_blocks;
  int64_t count, step;
  int64_t row = 0, block = 0;  // the product's first

  const EpilogueTerm* of(int64_t j) const { return of_blocks + (block + j) * step; }
  const float* at(const EpilogueTerm& x, int64_t j) const {
    return x.data + row * x.row_step + (block + j) * x.block_step;
  }
};

}  // namespace sextant::cpu
