// Tensors of 16-bit types (bfloat16, float16), which are stored in 16 bits and computed in float32.
//
// attend_with() and similar functions accept them for q, k, v, parameters and inputs of embed(),
// and their results have the type of q (or x). Methods compute in float32: applied() converts
// parameters and q, and also k and v if the method changes_keys(). Tensors that the method does not
// change are passed to the kernel in their original type.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sextant/base/view.h"

namespace sextant {

inline bool is_narrow(const at::Tensor& x) {
  return x.defined() && (x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf);
}

inline at::ScalarType scalar_type(DType type) {
  switch (type) {
    case DType::kBfloat16:
      return at::kBFloat16;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kFloat64:
      return at::kDouble;
    case DType::kFloat32:
      break;
  }
  return at::kFloat;
}

// The type in which a tensor's elements are computed.
inline at::ScalarType wide_type(const at::Tensor& x) {
  return is_narrow(x) ? at::kFloat : x.scalar_type();
}

// x itself, or x converted to float32 if it is narrow; differentiable.
inline at::Tensor to_float(const at::Tensor& x) { return is_narrow(x) ? x.to(at::kFloat) : x; }

template <class Tensors>
std::vector<at::Tensor> all_to_float(const Tensors& tensors) {
  std::vector<at::Tensor> wide;
  wide.reserve(tensors.size());
  for (const at::Tensor& x : tensors) wide.push_back(to_float(x));
  return wide;
}

}  // namespace sextant
