// A network with one scalar input, one hidden layer of ReLUs and one output per head, evaluated by
// its linear pieces:
//
//   y_h = sum_u w2_hu relu(w1_u x + b1_u) + b2_h    is linear in x between the points -b1_u / w1_u,
//
// so each x costs one multiplication and one addition per head, whatever the width of the layer,
// and the hidden layer is never in memory.
#pragma once

#include <ATen/core/Tensor.h>

namespace sextant {

struct ReluNetwork {
  at::Tensor in_weight, in_bias;    // w1 [width, 1], b1 [width]
  at::Tensor out_weight, out_bias;  // w2 [heads, width], b2 [heads]
};

// x is float32 or float64; returns [heads, elements of x] in the type of x. Differentiable once, in
// x and in the network, whose tensors may be of any type. At a point between two pieces the
// gradient of ReLU is that of either side. Fastest if neighbours in x mostly lie in one piece. All
// results are NaN if a weight or bias is not finite.
at::Tensor evaluate(const ReluNetwork& network, const at::Tensor& x);

}  // namespace sextant
