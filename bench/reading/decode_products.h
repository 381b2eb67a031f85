// The two products of decoding as attention's kernel makes them, and nothing between them: what it could reach at most.
#pragma once

#include <cstdint>
#include <span>

#include "sextant/attention/executor.h"

namespace sextant::bench {

// A cache of so many keys and values of each key head.
struct DecodeSizes {
  int64_t columns = 128;  // of keys and of values, a multiple of 16
  int64_t group = 1;      // query heads that share a key head
};
inline constexpr int64_t kCachedKeys = 8192;
// What keys and values of a head of so many columns are.
constexpr int64_t numbers_of_head(int64_t columns) { return 2 * kCachedKeys * columns; }

// One query of each query head with all keys and values there is room for in `numbers`: first the keys of all key heads,
// then their values. Unit by unit, as decoding reads them.
void multiply_cached(std::span<const float> numbers, const DecodeSizes& sizes,
                     const Executor& executor);

}  // namespace sextant::bench
