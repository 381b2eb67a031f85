// Where queries and keys lie in a sequence, and which keys a query sees. No arithmetic on data.
//
// Positions are explicit and 64-bit. A frame is a rectangle of the score matrix whose rows and
// columns lie at consecutive positions; plain self-attention, memory, a KV cache, a chunk of a
// longer text and each text of a packed batch are frames that differ in these numbers only.
#pragma once

#include <cstdint>

namespace sextant {

// A half-open range of key rows, [first, last). Empty when first >= last.
struct KeyRange {
  int64_t first = 0;
  int64_t last = 0;

  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

inline constexpr int64_t kEveryBatch = -1;

// Rows [query_row, query_row + queries) of q stand at positions query_position, query_position + 1,
// ...; rows [key_row, key_row + keys) of k and v at key_position, key_position + 1, ...
// A query sees keys of its own frame only, so packed texts are one frame each.
struct Frame {
  int64_t batch = kEveryBatch;  // the batch entry it belongs to, or every one
  int64_t query_row = 0, queries = 0, query_position = 0;
  int64_t key_row = 0, keys = 0, key_position = 0;

  // Query position minus key position, for absolute rows: positive for keys in the past.
  int64_t distance(int64_t query, int64_t key) const {
    return (query_position + query - query_row) - (key_position + key - key_row);
  }
};

// How distances are counted in vectors "by distance". All pairs (query, key) at one distance share
// a diagonal of the score matrix; diagonals are counted so that the index grows with the key row: a
// row of scores then reads its biases forwards.
//
//             key 0    1    2    3
//   query 0      [1]  [2]  [3]  [4]
//   query 1      [0]  [1]  [2]  [3]       diagonal = farthest - distance
struct Diagonals {
  int64_t farthest = 0;  // the distance of diagonal 0
  int64_t count = 0;

  int64_t index(int64_t distance) const { return farthest - distance; }
  int64_t distance(int64_t index) const { return farthest - index; }
};

}  // namespace sextant
