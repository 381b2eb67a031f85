// The operations of a transformer beside attention, as differentiable functions of tensors. On the
// CPU they use sextant/dense, which passes over memory once where chains of libtorch functions do
// so several times; on other devices they are libtorch's functions. All tensors of a call are
// float32 and on one device.
#pragma once

#include <ATen/core/Tensor.h>

namespace sextant {

// x weight^T, or base + x weight^T. x: [..., columns], weight: [rows, columns], base and result:
// [..., rows].
at::Tensor projected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& base = {});

struct NormOptions {
  double epsilon = 1e-5;
  bool centered = true;
};

// LayerNorm without a bias, or RMSNorm if not centered, over the last dimension. gain: [columns].
at::Tensor normalized(const at::Tensor& x, const at::Tensor& gain, const NormOptions& options);

// x + max(normalized(x) up^T, 0)^2 down^T. up: [hidden, columns], down: [columns, hidden].
at::Tensor squared_relu_layer(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& up,
                              const at::Tensor& down, const NormOptions& options);

// The loss, in nats, of each row of logits [rows, columns] for its target column, int64 in [0,
// columns). Throws Error for a target out of range.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace sextant
