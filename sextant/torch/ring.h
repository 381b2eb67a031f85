// Ring attention: attention to a sequence of which each rank of a group holds a part of the rows.
//
// Liu, Zaharia and Abbeel 2023 (arXiv 2310.01889): queries stay, and keys and values visit the
// ranks in turn, each while those before are used. Each visit is one ordinary call of attend() for
// keys with positions of their own, so every position encoding is served; the results are joined by
// their lse (ring/ring_passes.h).
//
// A method sees the layout of the whole sequence, of which it makes operands with O(length)
// elements: ranges, tables and biases by distance, sums over gates. No rank has all keys at once.
// If the method changes keys (Method::changes_keys), each rank changes its own before it sends
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

#include "sextant/torch/group.h"
#include "sextant/torch/method.h"
#include "sextant/torch/ring/shards.h"

namespace sextant {

struct RingLayout {
  Shards shards = Shards::kZigzag;
  bool causal = true;
};

// (out [batch, heads, rows, Dv], lse [batch, heads, rows]) of the rank's own queries, as
// attend_with_lse() has them for the whole sequence. q, k (from with_key_columns()) and v are the
// rows of the rank at positions_of_shard(). `terms` may have a key_bias of the rank's own keys, and
// no dropout, as the weights that it drops depend on rows, not on positions.
//
// Differentiable once. Gradients are of the sum of the losses of all ranks, which must all run the
// backward pass: those of q, k, v and key_bias are complete. Those of parameters and the sink are
// this rank's part, as are those of all other weights of a model whose ranks share a sequence: sum
// them over the ranks (Group::all_reduce, DistributedDataParallel).
//
// Throws Error as attend_with() does, and if the arguments of the ranks differ.
std::tuple<at::Tensor, at::Tensor> attend_ring(const Group& group, const Method& method,
                                               const at::Tensor& q, const at::Tensor& k,
                                               const at::Tensor& v, const RingLayout& ring,
                                               int64_t layer, Parameters parameters,
                                               const CallTerms& terms = {});

}  // namespace sextant
