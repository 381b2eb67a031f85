// Views into the memory of tensors, with any strides and without copies.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <type_traits>
#include <vector>

#include "sextant/attention/score.h"
#include "sextant/torch/operators/tensor_data.h"

namespace sextant {

template <class T>
View<T> view_of(void* data, const at::Tensor& x) {
  return {.data = static_cast<T*>(data),
          .batch = x.size(0),
          .heads = x.size(1),
          .rows = x.size(2),
          .columns = x.size(3),
          .batch_stride = x.stride(0),
          .head_stride = x.stride(1),
          .row_stride = x.stride(2),
          .column_stride = x.stride(3)};
}

// [batch, heads, rows, columns]
template <class T>
View<T> view_4d(const at::Tensor& x) {
  return view_of<T>(x.data_ptr<std::remove_const_t<T>>(), x);
}
// The same for elements of type bfloat16, float16 or T.
template <class T>
AnyView<T> any_view_4d(const at::Tensor& x) {
  if (x.scalar_type() == at::kBFloat16)
    return view_of<typename AnyView<T>::template Like<Bfloat16>>(x.data_ptr(), x);
  if (x.scalar_type() == at::kHalf)
    return view_of<typename AnyView<T>::template Like<Float16>>(x.data_ptr(), x);
  return view_4d<T>(x);
}
// [batch, heads, rows]
template <class T>
View<T> view_rows(const at::Tensor& x) {
  return view_4d<T>(x.unsqueeze(3));
}

// Sets a view, or a list of a contiguous tensor's elements.
template <class T>
void set_view(const at::Tensor& x, View<T>& to) {
  to = view_of<T>(x.data_ptr(), x);
}
template <class T>
void set_view(const at::Tensor& x, AnyView<T>& to) {
  to = any_view_4d<T>(x);
}
template <class T>
void set_view(const at::Tensor& x, std::span<T>& to) {
  to = {x.data_ptr<std::remove_const_t<T>>(), static_cast<size_t>(x.numel())};
}

// A tensor of an operand, or its gradient, with the four axes of a View.
template <class Entry>
at::Tensor with_four_axes(Entry operand, const at::Tensor& x) {
  at::Tensor four = operand.has(Axis::kBatch) ? x : x.unsqueeze(0);
  while (four.dim() < 4) four = four.unsqueeze(-1);
  return four;
}

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

// The elements of index tensors as values of the core: rows of int64 as a Frame, or as a KeyRange.

// The tensor must be in memory, of integers that a Value consists of. None if it is undefined.
template <class Value>
std::vector<Value> values_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  const at::Tensor whole = x.contiguous();
  const auto* data = static_cast<const Value*>(whole.data_ptr());
  return {data, data + whole.nbytes() / sizeof(Value)};
}

}  // namespace sextant
