// Building blocks of eager attention, in the form of the official code of the methods.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "sextant/attention/score.h"
#include "sextant/position/spectrum.h"

namespace sextant::bench {

// softmax(scores + mask) v, with a mask of `mask_of`.
at::Tensor weighted(const at::Tensor& scores, const at::Tensor& mask, const at::Tensor& v);

// [queries, keys]: 0 for keys that a query (the queries are the last of `keys` positions) sees,
// -infinity for the others; undefined if every query sees every key.
at::Tensor mask_of(int64_t queries, int64_t keys,
                   const std::function<KeyRange(int64_t position)>& visible);

// The matrix f(distance), int64 [queries, keys].
at::Tensor by_distance(int64_t queries, int64_t keys,
                       const std::function<int64_t(int64_t distance)>& f);

// cos and sin of each pair's angle at positions first .. first + count - 1, for both of its
// columns: [count, head_dim] (half-split pairs).
struct Angles {
  at::Tensor cos, sin;
};
Angles angles(const Rotation& rotation, int64_t head_dim, int64_t first, int64_t count);

// x cos + rotate_half(x) sin
at::Tensor rotated(const at::Tensor& x, const Angles& angles);

// Transformer-XL's shift, y[i, j] = x[i, rows - 1 - i + j], by padding and a view with another row
// length.
at::Tensor rel_shift(const at::Tensor& x);

}  // namespace sextant::bench
