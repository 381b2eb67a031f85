// The elements of index tensors as values of the core: rows of int64 as a Frame, or as a KeyRange.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sextant {

// The tensor must be in memory, of integers that a Value consists of. None if it is undefined.
template <class Value>
std::vector<Value> values_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  const at::Tensor whole = x.contiguous();
  const auto* data = static_cast<const Value*>(whole.data_ptr());
  return {data, data + whole.nbytes() / sizeof(Value)};
}

}  // namespace sextant
