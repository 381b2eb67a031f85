// The positions of a layer's queries and keys, which keys are visible, and packed sequences. A
// layout is independent of the method.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "sextant/position/frame.h"

namespace sextant {

class PlanCache;

// Keys have positions first_key .. first_key + keys - 1, queries first_query .. (the last
// positions, when decoding). With `packed_queries` and `packed_keys` (cumulative lengths, starting
// at 0) the rows hold several sequences one after the other: the keys of each start at position 0,
// its queries have its last positions, and it sees only itself. Every batch entry is packed alike.
//
// `cached` holds the sequences of a cache, each with positions of its own. Their query rows are
// consecutive. The key rows of each start with a page, and rows between sequences belong to none.
struct Layout {
  int64_t batch = 1;
  int64_t queries = 0, keys = 0;
  int64_t first_query = 0, first_key = 0;
  bool causal = true;
  std::vector<int64_t> packed_queries = {}, packed_keys = {};
  std::vector<Frame> cached = {};
  // bool [batch, heads, queries, keys] (sizes of 1 are shared), false = hidden; or undefined
  at::Tensor mask = {};
  // int64 [1 or batch, axes, rows], or undefined: the positions that rotations use instead of those
  // above. Visibility and distances use the positions above.
  at::Tensor query_rotary_positions = {}, key_rotary_positions = {};
  // int64 [batch, rows], or undefined: the segment of each row (XLNet)
  at::Tensor query_segments = {}, key_segments = {};
  // int64 [batch, queries], or undefined: the token of each row
  at::Tensor token_ids = {};
  // [batch, sequences, width], or undefined: the result of Method::embed() at the position before
  // the first query of each sequence, for methods that continue from it (recurs_over_input()). The
  // entry of a sequence that begins with its first query is ignored.
  at::Tensor input_before = {};

  // The plans of attention with this layout, which layers and calls share; or null.
  std::shared_ptr<PlanCache> plans = {};

  // The lowest and highest visible distance; 0 or more if causal.
  int64_t nearest_distance() const;
  int64_t farthest_distance() const;
  // The diagonals of these distances; none if no query sees any key.
  Diagonals diagonals() const;
};

// All throw Error if a size is negative or cumulative lengths do not fit.
std::vector<Frame> sequences(const Layout& layout);  // one, or the packed or cached ones
at::Tensor frames(const Layout& layout);             // the same as int64 [sequences, 7]
at::Tensor visible_ranges(const Layout& layout);     // int64 [1, queries, 2], causal or not
at::Tensor query_positions(const Layout& layout);    // int64 [queries]
at::Tensor key_positions(const Layout& layout);      // int64 [keys]; 0 for rows of no sequence
// The position of the first key of each query's sequence, int64 [queries].
at::Tensor sequence_starts(const Layout& layout);

// The positions that rotations use: the layout's rotary positions, or without them the positions of
// rows, equal on all axes. int64 [1 or batch, axes, rows]. Throws Error if the layout's rotary
// positions have another shape.
at::Tensor query_rotary_positions(const Layout& layout, int64_t axes);
at::Tensor key_rotary_positions(const Layout& layout, int64_t axes);

// The layout's token ids. Throws Error if there are none, or if they have another shape or type.
const at::Tensor& query_token_ids(const Layout& layout);

// Ranges of keys as int64 [1, queries, 2]. They end with the query's sequence but ignore the causal
// mask.
//
// The keys at distances -after .. before:
at::Tensor near_ranges(const Layout& layout, int64_t before, int64_t after);
// The first `count` keys:
at::Tensor first_ranges(const Layout& layout, int64_t count);
// The keys in the query's chunk and in `beside` chunks on either side. Chunks are `size` positions
// long, and one starts at `origin`:
at::Tensor chunk_ranges(const Layout& layout, int64_t size, int64_t origin, int64_t beside = 0);

}  // namespace sextant
