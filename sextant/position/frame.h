// Positions of queries and keys in a sequence, and the keys visible to a query. This file does no
// arithmetic on data.
//
// Positions are explicit and 64-bit. A frame is a rectangle of the score matrix whose rows and
// columns have consecutive positions. Plain self-attention, memory, a KV cache, a chunk of a longer
// sequence and each sequence of a packed batch are all frames; they differ only in these integers.
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

// Rows [query_row, query_row + queries) of q have positions query_position, query_position + 1,
// ...; rows [key_row, key_row + keys) of k and v have key_position, key_position + 1, ... A query
// sees only keys of its own frame, so each packed sequence is one frame.
struct Frame {
  int64_t batch = kEveryBatch;  // the frame's batch entry, or every one
  int64_t query_row = 0, queries = 0, query_position = 0;
  int64_t key_row = 0, keys = 0, key_position = 0;

  // Query position minus key position, for rows of q and k: positive for keys in the past.
  int64_t distance(int64_t query, int64_t key) const {
    return (query_position + query - query_row) - (key_position + key - key_row);
  }
};

// The index of a distance in vectors "by distance". All pairs (query, key) at one distance share a
// diagonal of the score matrix. The index grows with the key row, so that a row of scores reads its
// biases forwards.
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
