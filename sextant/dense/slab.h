// A slab of a product: one block of the inner dimension and some columns of the right operand. Each
// pass computes one slab.
#pragma once

#include <cstdint>

#include "sextant/dense/product.h"

namespace sextant::dense {

inline constexpr int64_t kColumns = 512;   // columns of b that are packed at a time
inline constexpr int64_t kGroupRows = 96;  // rows of a per task, at most
inline constexpr int64_t kRowStep = 6;     // row multiple of a group; whole tiles of every target
inline constexpr int64_t kMostPanel = 64;  // columns of a panel, at most

struct Slab {
  Matrix a, b;  // restricted to the block; b also to the columns
  Epilogue finish;
  float* c;
  int64_t stride;  // row stride of c and of the epilogue's arrays
  float* panels;   // packed b, in the layout of the multiplier
  float* groups;   // packed a, one per worker; unused where rows are read in place
};

// The epilogue or slab advanced by `by` floats in c.
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
