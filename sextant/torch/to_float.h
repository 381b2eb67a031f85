// Tensors of 16-bit numbers (bfloat16, float16): kept so, and computed with in float32.
//
// attend_with() and its like take them for q, k, v, the parameters and what is embedded, and give
// results of the type of q (or x). A method never sees them where it computes: placed() hands it
// parameters, q, and, if it changes_keys(), k and v in float32; of these, what it leaves alone goes
// to the kernel as it was given.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sextant {

inline bool is_narrow(const at::Tensor& x) {
  return x.defined() && (x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf);
}

// The type in which a tensor's numbers are computed with.
inline at::ScalarType wide_type(const at::Tensor& x) {
  return is_narrow(x) ? at::kFloat : x.scalar_type();
}

// x as it is, or in float32 if it is narrow; differentiable.
inline at::Tensor to_float(const at::Tensor& x) { return is_narrow(x) ? x.to(at::kFloat) : x; }

template <class Tensors>
std::vector<at::Tensor> all_to_float(const Tensors& tensors) {
  std::vector<at::Tensor> wide;
  wide.reserve(tensors.size());
  for (const at::Tensor& x : tensors) wide.push_back(to_float(x));
  return wide;
}

}  // namespace sextant
