// The backend that serves a call of the operators.
#pragma once

#include <ATen/core/Tensor.h>

#include "sextant/attention/attend.h"

namespace sextant {

// By the type and length of q and torch.set_float32_matmul_precision(): "medium" allows products to
// round their factors to bfloat16 where that is fast, "high" to sum products of bfloat16 terms.
const Backend& forward_backend(const at::Tensor& q);
const Backend& backward_backend(const at::Tensor& q);

// While it lives, calls of this thread on float32 (and what is computed as float32) go to one
// backend.
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
