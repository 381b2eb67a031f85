// Terms that are added to the values of a product before they are stored, which saves a pass.
#pragma once

#include <cstdint>

namespace sextant::cpu {

// The term of row i and block j of kLanes columns is data[i * row_step + j * block_step ...].
struct EpilogueTerm {  // no defaults, so that lists are not initialised before they are filled
  const float* data;
  int64_t row_step, block_step;
};

// At least one term for each block, `count` in all, added one after the other: block j has
// of(j)[0], of(j)[1] and so on. step: count, or 0 if all blocks share one term with a block_step.
struct EpilogueTerms {
  const EpilogueTerm* of_blocks;
  int64_t count, step;
  int64_t row = 0, block = 0;  // the first row and block of the product

  const EpilogueTerm* of(int64_t j) const { return of_blocks + (block + j) * step; }
  const float* at(const EpilogueTerm& x, int64_t j) const {
    return x.data + row * x.row_step + (block + j) * x.block_step;
  }
};

}  // namespace sextant::cpu
