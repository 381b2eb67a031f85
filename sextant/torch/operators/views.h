// Views into the memory of tensors, with any strides and without copies.
#pragma once

#include <ATen/core/Tensor.h>

#include "sextant/attention/score.h"
#include "sextant/torch/operators/tensor_data.h"

namespace sextant {

template <class T>
View<T> view_4d(const at::Tensor& x);  // [batch, heads, rows, columns]
// The same for elements of type bfloat16, float16 or T.
template <class T>
AnyView<T> any_view_4d(const at::Tensor& x);
template <class T>
View<T> view_vectors(const at::Tensor& x);  // [heads, rows, columns]
template <class T>
View<T> view_numbers(const at::Tensor& x);  // [heads, rows]
template <class T>
View<T> view_rows(const at::Tensor& x);  // [batch, heads, rows]

// Operands that point into tensors which check_data() has accepted; T is wide_type() of q. It owns
// the tensors that it had to make: 16-bit tables, query biases and sinks converted to T, and a
// contiguous sink.
template <class T>
class OperandViews {
 public:
  explicit OperandViews(const TensorData& data);
  OperandViews(const OperandViews&) = delete;
  OperandViews& operator=(const OperandViews&) = delete;

  const Operands<T>& operands() const { return operands_; }

 private:
  TensorData data_;
  Operands<T> operands_;
};

}  // namespace sextant
