// A slab of a product: one block of the inner dimension and some columns of the right side. What
// one pass works on.
#pragma once

#include <cstdint>

#include "sextant/dense/product.h"

namespace sextant::dense {

inline constexpr int64_t kColumns = 512;   // of b that are packed at a time
inline constexpr int64_t kGroupRows = 96;  // of a, one task at most
inline constexpr int64_t kRowStep = 6;  // a group has a multiple of it; whole tiles of every target
inline constexpr int64_t kMostPanel = 64;  // columns of a panel at most

struct Slab {
  Matrix a, b;  // of this block, and of these columns
  Epilogue finish;
  float* c;
  int64_t stride;  // from row to row of c and of what finishes it
  float* panels;   // of b, as who multiplies wants them
  float* groups;   // of a, one for each worker; not used where rows are read in place
};

// The same further on in c.
inline Epilogue moved(const Epilogue& finish, int64_t by) {
  return {finish.base ? finish.base + by : nullptr,
          finish.slope_at ? finish.slope_at + by : nullptr,
          finish.squared_relu ? finish.squared_relu + by : nullptr};
}

inline Slab moved(const Slab& slab, int64_t by) {
  Slab to = slab;
  to.finish = moved(slab.finish, by);
  to.c += by;
  return to;
}

}  // namespace sextant::dense
