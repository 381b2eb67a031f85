// Where a layer's queries and keys lie, before any method has spoken.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sextant {

// Keys cover positions first_key .. first_key + keys - 1, queries first_query .. (the last ones, when
// decoding). With `packed_queries` and `packed_keys` (cumulative lengths, starting at 0) the rows hold
// several texts one after the other; each starts again at position 0 and sees itself only.
struct Placement {
  int64_t batch = 1;
  int64_t queries = 0, keys = 0;
  int64_t first_query = 0, first_key = 0;
  bool causal = true;
  std::vector<int64_t> packed_queries, packed_keys;

  // The lowest and highest query minus key position that can occur.
  int64_t nearest_distance() const;
  int64_t farthest_distance() const;
  int64_t diagonals() const { return farthest_distance() - nearest_distance() + 1; }
};

at::Tensor frames(const Placement& placement);           // int64 [frames, 7]
at::Tensor visible_runs(const Placement& placement);     // int64 [1, queries, 2], causal or whole
at::Tensor query_positions(const Placement& placement);  // int64 [queries]
at::Tensor key_positions(const Placement& placement);    // int64 [keys]

}  // namespace sextant
