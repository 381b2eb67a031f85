#include "sextant/torch/operators/views.h"

#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

// A bias or mask with its whole sizes. Tables that heads share stay: kernels see that.
template <class Entry>
at::Tensor expanded(Entry operand, const at::Tensor& x, const TensorData& d) {
  if (!operand.may_share(Axis::kBatch)) return x;
  const AxisSizes<int64_t> all = {
      d.q.size(0), d.q.size(1), -1, d.q.size(2), d.pages.defined() ? d.key_rows : d.k.size(2),
      -1,          -1};
  std::vector<int64_t> sizes;
  for (int64_t dim = 0; dim < x.dim(); ++dim) {
    const Axis axis = operand.axis(static_cast<size_t>(dim));
    sizes.push_back(axis < Axis::kRows ? all[static_cast<size_t>(axis)] : -1);
  }
  return x.expand(sizes);
}

}  // namespace

// A view of no columns has an address, too.
template <class T>
Int8Pages<T> int8_view(const PagedRows& rows) {
  static int8_t none = 0;
  void* const data = rows.numbers.numel() > 0 ? rows.numbers.data_ptr() : &none;
  return {view_of<const int8_t>(data, rows.numbers), view_4d<const T>(rows.scale)};
}

template <class T>
OperandViews<T>::OperandViews(const TensorData& data) : data_(data) {
  TensorData& d = data_;
  Operands<T>& o = operands_;
  each_tensor(d, [&](auto operand, at::Tensor& x) {
    if (!x.defined()) return;
    if (operand.elements == Elements::kComputed) x = to_float(x);
    if (operand.axis(1) == Axis::kNone) x = x.contiguous();
    set_view(with_four_axes(operand, expanded(operand, x, d)), operand.of(o));
  });
  if (!d.int8_pages.empty()) {
    for (at::Tensor& x : d.int8_pages) x = x.contiguous();
    o.k_int8 = int8_view<T>({d.k, d.int8_pages, true});
    o.v_int8 = int8_view<T>({d.v, d.int8_pages, false});
  }
  o.scale = d.scale;
  o.softcap = d.softcap;
  if (d.dropout.p > 0)
    o.dropout = {.probability = d.dropout.p,
                 .seed = static_cast<uint64_t>(d.dropout.seed.item<int64_t>()),
                 .first_query = d.dropout.first_query};
}

template class OperandViews<float>;
template class OperandViews<double>;

}  // namespace sextant
