// The instance of the kernels that serves a call, and the layout of a block's shared memory.
#pragma once

#include "sextant/attention/cuda/driver.h"

namespace sextant::cuda {

// Tiles that a kernel's block holds beside queries and keys.
struct Holds {
  bool q_raw = false, q_imag = false, k_raw = false;  // *_raw: in tiles of their own
  bool v = false, d_out = false, table = false, by_diagonal = false;
  bool skew = false, weights = false, skewed = false, saved = false, axis_rows = false;
};

// The tiles of a kernel, and their size in bytes.
SharedTiles shared_tiles(Kernel kernel, Instance instance, const Holds& holds);

inline int32_t round_up(int64_t n, int64_t unit) {
  return static_cast<int32_t>((n + unit - 1) / unit * unit);
}

}  // namespace sextant::cuda
