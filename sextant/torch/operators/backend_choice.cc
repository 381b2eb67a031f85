#include "sextant/torch/operators/backend_choice.h"

#include <ATen/Context.h>

#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

thread_local const Backend* overriding = nullptr;

at::Float32MatmulPrecision precision() {
  try {
    return at::globalContext().float32MatmulPrecision();
  } catch (const c10::Error&) {
    // Newer versions of libtorch throw if the settings of CUDA or oneDNN differ from it. Products
    // are then exact.
    return at::Float32MatmulPrecision::HIGHEST;
  }
}

// With fewer queries, vector code takes the same time or less.
bool pays_by_amx(const at::Tensor& q) {
  constexpr int64_t kFewest = 1024;
  return multiplies_by_amx() && q.size(2) >= kFewest;
}

}  // namespace

// float64 is for gradient checks, which need exactness and not speed. The reference computes it.
const Backend& forward_backend(const at::Tensor& q) {
  if (q.is_cuda())
    return overriding && overriding->device == Device::kCuda ? *overriding : cuda_backend();
  if (wide_type(q) != at::kFloat) return reference_backend();
  if (overriding) return *overriding;
  const at::Float32MatmulPrecision allowed = precision();
  if (allowed == at::Float32MatmulPrecision::MEDIUM && multiplies_bfloat16())
    return cpu_bfloat16_backend();
  return allowed != at::Float32MatmulPrecision::HIGHEST && pays_by_amx(q) ? cpu_bf16x3_backend()
                                                                          : cpu_backend();
}

// The backward pass uses AMX at every precision: its gradients are as exact as those of vector
// code, and decoding, which must have the bits of prefill, has no gradients.
const Backend& backward_backend(const at::Tensor& q) {
  const bool by_amx = q.is_cpu() && wide_type(q) == at::kFloat && !overriding && pays_by_amx(q);
  return by_amx ? cpu_bf16x3_backend() : forward_backend(q);
}

BackendOverride::BackendOverride(const Backend& backend) : before_(overriding) {
  overriding = &backend;
}
BackendOverride::~BackendOverride() { overriding = before_; }

}  // namespace sextant
