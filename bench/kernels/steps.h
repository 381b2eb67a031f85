// The steps of the attention kernels, each timed alone, on scratch memory with the layout of the
// kernel. Strips or blocks of queries go one after the other through one unit of keys.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/filled.h"
#include "sextant/attention/cpu/sizes.h"

namespace sextant::bench {

struct Step {
  std::string name;
  double operations;           // of its products, two per multiply-add; 0 without products
  std::function<void()> call;  // over all strips or blocks
};

struct Steps {
  std::string name, part;  // part: the work that a time refers to, such as "strip of ..."
  int64_t parts = 0;       // per call
  std::vector<Step> list;
};

// columns: of q, k and v, a multiple of cpu::kLanes. The last step, "all", runs all others one
// after the other.
Steps forward_steps(int64_t columns);
Steps backward_steps(int64_t columns);

// The steps of attention with a table of vectors A by distance: q A; q k with q A added; and
// scatter_add, which a table on values needs for near keys. every_distance: a row for each
// distance. far_tile: a clipped table and keys so far that all of them use one row; the forward
// pass leaves the product with this row out of the scores, since it cancels in softmax, so that
// only the backward pass adds it.
Steps every_distance_steps(int64_t columns);
Steps far_tile_steps(int64_t columns);

// The offset of query `row` in panels of queries.
constexpr int64_t in_panels(int64_t row, int64_t columns) {
  return cpu::round_down(row, cpu::kLanes) * columns + row % cpu::kLanes;
}

constexpr double operations_of_product(int64_t rows, int64_t columns, int64_t depth) {
  return 2.0 * static_cast<double>(rows * columns * depth);
}

// A function that calls one(kernel) and then kernel.next() for each part.
template <class Kernel, class One>
std::function<void()> each_part(std::shared_ptr<Kernel> kernel, int64_t parts, One one) {
  return [kernel, parts, one] {
    for (int64_t n = 0; n < parts; ++n) {
      one(*kernel);
      kernel->next();
    }
  };
}

}  // namespace sextant::bench
