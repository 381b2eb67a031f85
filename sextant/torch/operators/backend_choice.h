// The choice of a backend for a call of the operators.
#pragma once

#include <ATen/core/Tensor.h>

#include "sextant/attention/attend.h"

namespace sextant {

// CUDA tensors have one backend. On the CPU it depends on the type and length of q and on
// torch.set_float32_matmul_precision(): "medium" permits factors to be rounded to bfloat16 if the
// machine multiplies these, "high" permits sums of products of bfloat16 terms.
const Backend& forward_backend(const at::Tensor& q);
const Backend& backward_backend(const at::Tensor& q);

// During its lifetime, this thread's calls that are computed in float32, on the device of the given
// backend, use it.
class BackendOverride {
 public:
  explicit BackendOverride(const Backend& backend);
  ~BackendOverride();
  BackendOverride(const BackendOverride&) = delete;
  BackendOverride& operator=(const BackendOverride&) = delete;

 private:
  const Backend* before_;
};

}  // namespace sextant
