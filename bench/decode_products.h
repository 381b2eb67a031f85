// What decoding could do: its two products, as the kernel makes them, and nothing else.
#pragma once

#include "sextant/attention/score.h"
#include "sextant/base/executor.h"

namespace sextant::bench {

// Of few queries with all keys of their frames, none of which is turned, and with their values:
// unit by unit, as decoding reads them, and a key head at a time for each worker.
void multiply_cached(const Score<float>& score, const Executor& executor);

}  // namespace sextant::bench
