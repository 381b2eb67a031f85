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
    // Newer versions do not tell it where CUDA's or oneDNN's own setting differs; products stay
    // exact then.
    return at::Float32MatmulPrecision::HIGHEST;
  }
}

// Fewer queries take as long by vectors, or less.
bool pays_by_amx(const at::Tensor& q) {
  constexpr int64_t kFewest = 1024;
  return multiplies_by_amx() && q.size(2) >= kFewest;
}

}  // namespace

// float64 serves gradient checks, where exactness matters and speed does not: the oracle runs it.
const Backend& forward_backend(const at::Tensor& q) {
  if (wide_type(q) != at::kFloat) return reference_backend();
  if (overriding) return *overriding;
  const at::Float32MatmulPrecision allowed = precision();
  if (allowed == at::Float32MatmulPrecision::MEDIUM && multiplies_bfloat16())
    return cpu_bfloat16_backend();
  return allowed != at::Float32MatmulPrecision::HIGHEST && pays_by_amx(q) ? cpu_bf16x3_backend()
                                                                          : cpu_backend();
}

// Gradients by AMX are as exact as by vectors, and a single token has none.
const Backend& backward_backend(const at::Tensor& q) {
  const bool by_amx = wide_type(q) == at::kFloat && !overriding && pays_by_amx(q);
  return by_amx ? cpu_bf16x3_backend() : forward_backend(q);
}

BackendOverride::BackendOverride(const Backend& backend) : before_(overriding) {
  overriding = &backend;
}
BackendOverride::~BackendOverride() { overriding = before_; }

}  // namespace sextant
