// Where a layer's queries and keys lie, before any method has spoken.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sextant/position/frame.h"

namespace sextant {

// Keys cover positions first_key .. first_key + keys - 1, queries first_query .. (the last ones, when
// decoding). With `packed_queries` and `packed_keys` (cumulative lengths, starting at 0) the rows hold
// several texts one after the other: the keys of each start again at position 0, its queries are its
// last positions, and it sees itself only. Every batch entry is packed alike.
struct Placement {
  int64_t batch = 1;
  int64_t queries = 0, keys = 0;
  int64_t first_query = 0, first_key = 0;
  bool causal = true;
  std::vector<int64_t> packed_queries = {}, packed_keys = {};
  // bool [batch, heads, queries, keys], sizes of 1 are shared, false = hidden; or undefined
  at::Tensor mask = {};
  // int64 [batch, rows], or undefined: which text of a pair a row belongs to (XLNet)
  at::Tensor query_segments = {}, key_segments = {};

  // The lowest and highest query minus key position that is seen; causal: none below 0.
  int64_t nearest_distance() const;
  int64_t farthest_distance() const;
  // How many distances lie between them; 0 if no query sees any key.
  Diagonals diagonals() const;
};

// All throw Error if a size is negative or cumulative lengths do not fit.
std::vector<Frame> texts(const Placement& placement);    // one, or as many as are packed
at::Tensor frames(const Placement& placement);           // the same as int64 [texts, 7]
at::Tensor visible_runs(const Placement& placement);     // int64 [1, queries, 2], causal or whole
at::Tensor query_positions(const Placement& placement);  // int64 [queries]
at::Tensor key_positions(const Placement& placement);    // int64 [keys]

// The keys less than `window` positions away to either side: int64 [1, queries, 2].
at::Tensor window_runs(const Placement& placement, int64_t window);

}  // namespace sextant
