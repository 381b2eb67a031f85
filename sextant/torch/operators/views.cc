#include "sextant/torch/operators/views.h"

#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

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

}  // namespace

template <class T>
View<T> view_4d(const at::Tensor& x) {
  return view_of<T>(x.data_ptr<std::remove_const_t<T>>(), x);
}

template <class T>
AnyView<T> any_view_4d(const at::Tensor& x) {
  if (x.scalar_type() == at::kBFloat16)
    return view_of<typename AnyView<T>::template Like<Bfloat16>>(x.data_ptr(), x);
  if (x.scalar_type() == at::kHalf)
    return view_of<typename AnyView<T>::template Like<Float16>>(x.data_ptr(), x);
  return view_4d<T>(x);
}

template <class T>
View<T> view_vectors(const at::Tensor& x) {
  return view_4d<T>(x.unsqueeze(0));
}

template <class T>
View<T> view_numbers(const at::Tensor& x) {
  return view_vectors<T>(x.unsqueeze(-1));
}

template <class T>
View<T> view_rows(const at::Tensor& x) {
  return view_4d<T>(x.unsqueeze(3));
}

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
  for (at::Tensor* x :
       {&d.weight, &d.bias, &d.on_query, &d.on_key, &d.on_value, &d.sink, &d.query_bias})
    *x = to_float(*x);
  Operands<T>& o = operands_;
  o.q = any_view_4d<const T>(d.q);
  o.k = any_view_4d<const T>(d.k);
  o.v = any_view_4d<const T>(d.v);
  if (!d.int8_pages.empty()) {
    for (at::Tensor& x : d.int8_pages) x = x.contiguous();
    o.k_int8 = int8_view<T>({d.k, d.int8_pages, true});
    o.v_int8 = int8_view<T>({d.v, d.int8_pages, false});
  }
  if (d.q_imag.defined()) o.q_imag = any_view_4d<const T>(d.q_imag);
  o.scale = d.scale;
  o.softcap = d.softcap;
  if (d.dropout.p > 0)
    o.dropout = {.probability = d.dropout.p,
                 .seed = static_cast<uint64_t>(d.dropout.seed.item<int64_t>()),
                 .first_query = d.dropout.first_query};
  if (d.weight.defined()) o.weight = view_numbers<const T>(d.weight);
  if (d.bias.defined()) o.bias = view_numbers<const T>(d.bias);
  if (d.on_query.defined()) o.on_query = view_vectors<const T>(d.on_query);
  if (d.on_key.defined()) o.on_key = view_vectors<const T>(d.on_key);
  if (d.on_value.defined()) o.on_value = view_vectors<const T>(d.on_value);
  const int64_t batch = d.q.size(0), heads = d.q.size(1), queries = d.q.size(2);
  if (d.query_bias.defined())
    o.query_bias = view_4d<const T>(d.query_bias.expand({batch, heads, queries, -1}));
  if (d.key_bias.defined())
    o.key_bias = view_rows<const double>(d.key_bias.expand({batch, heads, -1}));
  if (d.sink.defined()) {
    d.sink = d.sink.contiguous();
    o.sink = {d.sink.template data_ptr<T>(), static_cast<size_t>(d.sink.numel())};
  }
  if (d.mask.defined()) {
    const int64_t keys = d.pages.defined() ? d.key_rows : d.k.size(2);
    const at::Tensor mask = d.mask.expand({batch, heads, queries, keys});
    o.mask = view_of<const uint8_t>(mask.data_ptr<bool>(), mask);
  }
}

template View<float> view_4d(const at::Tensor&);
template View<double> view_4d(const at::Tensor&);
template View<const float> view_4d(const at::Tensor&);
template View<const double> view_4d(const at::Tensor&);
template AnyView<float> any_view_4d(const at::Tensor&);
template AnyView<double> any_view_4d(const at::Tensor&);
template AnyView<const float> any_view_4d(const at::Tensor&);
template AnyView<const double> any_view_4d(const at::Tensor&);
template View<float> view_vectors(const at::Tensor&);
template View<double> view_vectors(const at::Tensor&);
template View<float> view_numbers(const at::Tensor&);
template View<double> view_numbers(const at::Tensor&);
template View<float> view_rows(const at::Tensor&);
template View<double> view_rows(const at::Tensor&);
template View<const float> view_rows(const at::Tensor&);
template View<const double> view_rows(const at::Tensor&);
template class OperandViews<float>;
template class OperandViews<double>;

}  // namespace sextant
