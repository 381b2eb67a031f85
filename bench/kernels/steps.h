// The steps of the attention kernels, each alone, on numbers that lie where they lie in the kernel:
// strips or blocks of queries in turn meet one unit of keys.
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
  double operations;           // of its products, a multiplication and an addition being two; or 0
  std::function<void()> call;  // over all strips or blocks
};

struct Steps {
  std::string name, part;  // what a time is of: "strip of ..."
  int64_t parts = 0;       // in a call
  std::vector<Step> list;
};

// columns: of q, k and v, a multiple of cpu::kLanes. The last step is all of them, one after the
// other.
Steps forward_steps(int64_t columns);
Steps backward_steps(int64_t columns);

// What a table of vectors makes of plain attention: q A; q k with these added; and collect, where
// it is one of values and keys are near. Its rows are one for each distance, or it is clipped and
// all keys are so far that they meet one row, whose number only the backward pass adds.
Steps every_distance_steps(int64_t columns);
Steps far_tile_steps(int64_t columns);

// Query `row` in panels of queries.
constexpr int64_t in_panels(int64_t row, int64_t columns) {
  return cpu::round_down(row, cpu::kLanes) * columns + row % cpu::kLanes;
}

constexpr double operations_of_product(int64_t rows, int64_t columns, int64_t depth) {
  return 2.0 * static_cast<double>(rows * columns * depth);
}

// What does one(kernel) and kernel.next() for each part.
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
