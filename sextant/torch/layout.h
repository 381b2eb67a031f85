// Where a layer's queries and keys lie, before any method has spoken.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sextant/position/frame.h"

namespace sextant {

// Keys cover positions first_key .. first_key + keys - 1, queries first_query .. (the last ones,
// when decoding). With `packed_queries` and `packed_keys` (cumulative lengths, starting at 0) the
// rows hold several texts one after the other: the keys of each start again at position 0, its
// queries are its last positions, and it sees itself only. Every batch entry is packed alike.
//
// `cached` is the same for texts of a cache, each at positions of its own: their query rows follow
// one another, their key rows lie apart (each begins with a page), and rows between them are
// nobody's.
struct Layout {
  int64_t batch = 1;
  int64_t queries = 0, keys = 0;
  int64_t first_query = 0, first_key = 0;
  bool causal = true;
  std::vector<int64_t> packed_queries = {}, packed_keys = {};
  std::vector<Frame> cached = {};
  // bool [batch, heads, queries, keys], sizes of 1 are shared, false = hidden; or undefined
  at::Tensor mask = {};
  // int64 [1 or batch, axes, rows], or undefined: where rows stand for methods that turn them,
  // instead of at their positions; what is seen, and distances, go by position all the same
  at::Tensor query_rotary_positions = {}, key_rotary_positions = {};
  // int64 [batch, rows], or undefined: which text of a pair a row belongs to (XLNet)
  at::Tensor query_segments = {}, key_segments = {};
  // int64 [batch, queries], or undefined: which word of the vocabulary stands in each row
  at::Tensor token_ids = {};

  // The lowest and highest query minus key position that is seen; causal: none below 0.
  int64_t nearest_distance() const;
  int64_t farthest_distance() const;
  // How many distances lie between them; 0 if no query sees any key.
  Diagonals diagonals() const;
};

// All throw Error if a size is negative or cumulative lengths do not fit.
std::vector<Frame> sequences(const Layout& layout);  // one, or as many as are packed or cached
at::Tensor frames(const Layout& layout);             // the same as int64 [texts, 7]
at::Tensor visible_ranges(const Layout& layout);     // int64 [1, queries, 2], causal or whole
at::Tensor query_positions(const Layout& layout);    // int64 [queries]
at::Tensor key_positions(const Layout& layout);      // int64 [keys]; 0 for nobody's rows
// The position of the first key of each query's text, int64 [queries].
at::Tensor sequence_starts(const Layout& layout);

// Where rows stand for methods that turn them: the times given, or else their positions, the same
// on each axis. int64 [1 or batch, axes, rows]. Throws Error if those given are of another shape.
at::Tensor query_rotary_positions(const Layout& layout, int64_t axes);
at::Tensor key_rotary_positions(const Layout& layout, int64_t axes);

// The words given. Throws Error if there are none, or if they are of another shape or type.
const at::Tensor& query_token_ids(const Layout& layout);

// Runs as int64 [1, queries, 2]; none goes beyond a query's own text, but beyond the causal mask.
// The keys at distances -after .. before:
at::Tensor near_ranges(const Layout& layout, int64_t before, int64_t after);
// The first `count` keys:
at::Tensor first_ranges(const Layout& layout, int64_t count);
// The keys whose position is in the query's own chunk, or in one of `beside` chunks on either side:
// positions from `origin` on are cut every `size`.
at::Tensor chunk_ranges(const Layout& layout, int64_t size, int64_t origin, int64_t beside = 0);

}  // namespace sextant
