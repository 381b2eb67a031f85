// A network of one number in, one layer of ReLUs, and one number out for each head, by its pieces:
//
//   y_h = sum_u w2_hu relu(w1_u x + b1_u) + b2_h    is linear in x between the points -b1_u / w1_u,
//
// so each x costs a multiplication and an addition for a head, whatever the width of the layer, and
// no hidden unit is ever in memory.
#pragma once

#include <ATen/core/Tensor.h>

namespace sextant {

struct ReluNetwork {
  at::Tensor in_weight, in_bias;    // w1 [width, 1], b1 [width]
  at::Tensor out_weight, out_bias;  // w2 [heads, width], b2 [heads]
};

// x float32 or float64 -> [heads, elements of x], of its type. Differentiable once, by x and the
// network, whose tensors may be of any type; at a point between two pieces ReLU's gradient is that
// of either side. Fastest where neighbours in x mostly lie in one piece. All NaN if a weight or
// bias is not finite.
at::Tensor evaluate(const ReluNetwork& network, const at::Tensor& x);

}  // namespace sextant
