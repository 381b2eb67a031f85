// One decoding step by the C API alone: each layer appends a row to its cache and attends over it.
#pragma once

#include <cstdint>
#include <functional>

namespace sextant::bench {

struct StepSizes {
  int64_t layers = 12, heads = 8, key_heads = 8, head_dim = 64, keys = 1024;
};

// The returned function runs one step over `keys` keys (the new one included) and takes the row
// back, so that every call does the same work.
std::function<void()> core_step(const StepSizes& sizes, int threads);

}  // namespace sextant::bench
