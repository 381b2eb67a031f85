// One decoding step of the core alone: each layer appends a row to its cache and attends over it.
#pragma once

#include <cstdint>
#include <functional>

#include "sextant/base/executor.h"

namespace sextant::bench {

struct StepSizes {
  int64_t layers = 12, heads = 8, key_heads = 8, head_dim = 64, keys = 1024;
};

// The returned function runs one step over `keys` keys (the new one included) and takes the row
// back, so that every call does the same work. `executor` outlives it.
std::function<void()> core_step(const StepSizes& sizes, const Executor& executor);

}  // namespace sextant::bench
