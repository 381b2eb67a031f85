// Checks of each operand are derived from the list of operands and its axes. Pages are gathered for
// backends and passes that read none.
#include "sextant/torch/operators/tensor_data.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/operators/device_call.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

void check_pages(const TensorData& a) {
  if (!a.pages.defined()) {
    if (a.key_rows != 0) refuse("key_rows", "0, as there are no pages", std::to_string(a.key_rows));
    return;
  }
  check_tensor("pages", a.pages, at::kLong, {{Size::kOneOr, a.q.sym_size(0)}, {}});
  const c10::SymInt room = a.pages.sym_size(1) * a.k.sym_size(2);
  if (a.key_rows < 0 || room < a.key_rows) {
    std::ostringstream most;
    most << room;
    refuse("key_rows", "0 to " + most.str() + ", as pages hold", std::to_string(a.key_rows));
  }
}

void check_int8_pages(const TensorData& a) {
  if (a.int8_pages.empty()) return;
  if (!a.pages.defined()) refuse("int8_pages", "none, as there are no pages", "tensors");
  if (a.int8_pages.size() != 4)
    refuse("int8_pages", "4 tensors: integers and scales of k, and of v",
           std::to_string(a.int8_pages.size()));
  for (const at::Tensor& x : a.int8_pages) {
    if (x.dim() != 4) refuse("int8_pages", "tensors of 4 dimensions", type_and_sizes(x));
    if (x.device() != a.q.device()) refuse("int8_pages", a.q.device().str(), x.device().str());
    if (x.requires_grad()) refuse("int8_pages", "tensors without gradient", "one that requires it");
  }
  const Size count = {Size::kExactly, a.int8_pages[0].sym_size(0)};
  for (const bool keys : {true, false}) {
    const PagedRows own(keys ? a.k : a.v, a.int8_pages, keys);
    const Size heads = {Size::kExactly, own.x.sym_size(1)};
    check_tensor(
        keys ? "int8_pages[0]" : "int8_pages[2]", own.numbers, at::kChar,
        {count, heads, {Size::kExactly, own.x.sym_size(2)}, {Size::kExactly, own.x.sym_size(3)}});
    check_tensor(
        keys ? "int8_pages[1]" : "int8_pages[3]", own.scale, wide_type(a.q),
        {count, heads, {Size::kOneOr, own.x.sym_size(2)}, {Size::kOneOr, own.x.sym_size(3)}});
  }
}

// The pages of a list, below 0: of integers.
at::Tensor all_pages(const PagedRows& from, const at::Tensor& list) {
  if (!from.numbers.defined()) return from.x.index_select(0, list);
  const at::Tensor integers = (-1 - list).clamp_min(0);
  at::Tensor closed = from.numbers.index_select(0, integers).to(from.scale.scalar_type()) *
                      from.scale.index_select(0, integers);
  if (from.x.size(0) == 0) return closed;
  const at::Tensor open = from.x.index_select(0, list.clamp_min(0)).to(from.scale.scalar_type());
  return at::where((list < 0).view({-1, 1, 1, 1}), closed, open);
}

template <class Entry>
std::vector<Size> sizes_of(Entry operand, const TensorData& a) {
  const AxisSizes<c10::SymInt> all = {a.q.sym_size(0), a.q.sym_size(1), a.k.sym_size(1),
                                      a.q.sym_size(2), key_rows(a),     a.q.sym_size(3),
                                      a.v.sym_size(3)};
  std::vector<Size> sizes;
  for (size_t dim = 0; dim < 4 && operand.axis(dim) != Axis::kNone; ++dim) {
    const Axis axis = operand.axis(dim);
    if (axis < Axis::kRows)
      sizes.emplace_back(operand.may_share(axis) ? Size::kOneOr : Size::kExactly,
                         all[static_cast<size_t>(axis)]);
    else
      sizes.emplace_back();
  }
  return sizes;
}

// Checks an operand beside q and k.
template <class Entry>
void check_operand(Entry operand, const TensorData& a) {
  const at::Tensor& x = tensor_of(operand.of(a));
  const char* const name = operand.name;
  if (!x.defined()) return;
  const std::vector<Size> sizes = sizes_of(operand, a);
  if constexpr (operand.elements == Elements::kFloat64)
    check_tensor(name, x, at::kDouble, sizes);
  else if constexpr (operand.elements == Elements::kBool)
    check_tensor(name, x, at::kBool, sizes);
  else
    return check_like_q(name, x, a.q, sizes);
  if (x.device() != a.q.device() && !(a.q.is_meta() && x.scalar_type() == at::kBool))
    refuse(name, a.q.device().str() + ", as q", x.device().str());
}

void check_row_map(const std::string& name, const at::Tensor& row_at) {
  check_tensor(name.c_str(), row_at, at::kInt, {{}});
  check_on_cpu(name.c_str(), row_at, /*meta=*/true);
}

void check_axes(const TensorData& a) {
  if (a.axes.size() % kAxisTensors != 0)
    refuse("axes", "5 tensors for each axis", std::to_string(a.axes.size()));
  const Size batch = {Size::kOneOr, a.q.sym_size(0)};
  each_axis(a.axes, [&](const at::Tensor* axis) {
    check_tensor("axes: query positions", axis[kAxisQueries], at::kLong,
                 {batch, {Size::kExactly, a.q.sym_size(2)}});
    check_tensor("axes: key positions", axis[kAxisKeys], at::kLong,
                 {batch, {Size::kExactly, key_rows(a)}});
    check_tensor("axes: farthest", axis[kAxisFarthest], at::kLong, {1});
    for (const AxisTensor map : {kAxisBias, kAxisOnQuery})
      check_tensor("axes: rows", axis[map], at::kInt, {{}});
    for (size_t n = 0; n < kAxisTensors; ++n) check_on_cpu("axes", axis[n], /*meta=*/true);
    if (axis[kAxisBias].numel() > 0 && axis[kAxisOnQuery].numel() > 0)
      check_tensor("axes: rows", axis[kAxisOnQuery], at::kInt,
                   {Size{Size::kExactly, axis[kAxisBias].sym_size(0)}});
  });
}

void check_cap_and_dropout(const TensorData& a) {
  if (!std::isfinite(a.softcap) || a.softcap < 0)
    refuse("softcap", "a finite number above 0, or 0 for none", std::to_string(a.softcap));
  const DropoutOperand& dropout = a.dropout;
  if (!(dropout.p >= 0 && dropout.p < 1))
    refuse("dropout_p", "at least 0 and below 1", std::to_string(dropout.p));
  if (dropout.p > 0 && !dropout.seed.defined())
    refuse("dropout_seed", "Long [1], as there is a dropout_p", "none");
  check_tensor("dropout_seed", dropout.seed, at::kLong, {1});
  if (dropout.seed.defined() && !dropout.seed.is_cpu() && !dropout.seed.is_meta())
    refuse("dropout_seed", "a tensor on the CPU", dropout.seed.device().str());
  if (dropout.first_query < 0)
    refuse("dropout_first_query", "at least 0", std::to_string(dropout.first_query));
}

std::ostream& operator<<(std::ostream& out, const Size& s) {
  if (s.rule == Size::kAny) return out << "*";
  return out << (s.rule == Size::kOneOr ? "1 or " : "") << s.size;
}

template <class Type, class Sizes>  // Type: a type, or a string for several types
std::string text(const Type& type, const Sizes& sizes) {
  std::ostringstream out;
  out << type << " [";
  const char* comma = "";
  for (const auto& size : sizes) {
    out << comma << size;
    comma = ", ";
  }
  out << "]";
  return out.str();
}

bool fits(const at::Tensor& x, const std::vector<Size>& sizes) {
  const auto got = x.sym_sizes();
  if (got.size() != sizes.size()) return false;
  for (size_t n = 0; n < got.size(); ++n)
    if (!sizes[n].accepts(got[n])) return false;
  return true;
}

}  // namespace

c10::SymInt key_rows(const TensorData& a) {
  return a.pages.defined() ? c10::SymInt(a.key_rows) : a.k.sym_size(2);
}

void add_axis(TensorData& data, const AxisOperand& axis) {
  const auto map = [](const at::Tensor& rows) {
    return rows.defined() ? rows : at::empty({0}, at::kInt);
  };
  data.axes.insert(data.axes.end(), {axis.query_positions, axis.key_positions,
                                     at::full({1}, axis.farthest, at::kLong), map(axis.bias_rows),
                                     map(axis.on_query_rows)});
}

std::array<at::Tensor*, kDifferentiable> differentiable(OperandTensors& operands) {
  std::array<at::Tensor*, kDifferentiable> all;
  size_t n = 0;
  each_differentiable([&](auto operand) { all[n++] = &tensor_of(operand.of(operands)); });
  return all;
}

at::Tensor gathered(const PagedRows& from, const at::Tensor& pages, int64_t rows) {
  const at::Tensor& x = from.x;
  const int64_t count = pages.size(1);
  return all_pages(from, pages.flatten().to(x.device()))
      .view({pages.size(0), count, x.size(1), x.size(2), x.size(3)})
      .transpose(1, 2)
      .reshape({pages.size(0), x.size(1), count * x.size(2), x.size(3)})
      .narrow(2, 0, rows);
}

void gather_pages(TensorData& data) {
  if (!data.pages.defined()) return;
  check_data(data);
  for (at::Tensor* x : {&data.k, &data.v})
    *x = gathered({*x, data.int8_pages, x == &data.k}, data.pages, data.key_rows)
             .expand({data.q.size(0), -1, -1, -1});
  data.pages.reset();
  data.int8_pages.clear();
  data.key_rows = 0;
}

void check_data(const TensorData& a) {
  check_device("q", a.q);
  if (a.q.is_cuda() && wide_type(a.q) != at::kFloat)
    refuse("q", "Float, BFloat16 or Half on " + a.q.device().str(), type_and_sizes(a.q));
  if (wide_type(a.q) != at::kFloat && a.q.scalar_type() != at::kDouble)
    refuse("q", "Float, BFloat16, Half or Double", type_and_sizes(a.q));
  check_tensor("q", a.q, a.q.scalar_type(), {{}, {}, {}, {}});
  const Size pages = a.pages.defined() ? Size() : Size{Size::kExactly, a.q.sym_size(0)};
  check_like_q("k", a.k, a.q, {pages, {}, {}, {Size::kExactly, a.q.sym_size(3)}});
  const auto as_k = [&](int64_t dim) { return Size{Size::kExactly, a.k.sym_size(dim)}; };
  check_like_q("v", a.v, a.q, {as_k(0), as_k(1), as_k(2), {}});
  check_pages(a);
  check_int8_pages(a);
  each_operand([&](auto operand) {
    if constexpr (operand.presence == Presence::kOptional) check_operand(operand, a);
    if constexpr (operand.has(Axis::kRows))
      check_row_map(operand.name + std::string("_rows"), operand.of(a).row_at);
  });
  check_axes(a);
  check_cap_and_dropout(a);
}

void check_results(const TensorData& a, const at::Tensor& d_out, const at::Tensor& out,
                   const at::Tensor& lse) {
  const Size batch = {Size::kExactly, a.q.sym_size(0)}, heads = {Size::kExactly, a.q.sym_size(1)};
  const Size queries = {Size::kExactly, a.q.sym_size(2)};
  const Size columns = {Size::kExactly, a.v.sym_size(3)};
  check_like_q("d_out", d_out, a.q, {batch, heads, queries, columns});
  check_like_q("out", out, a.q, {batch, heads, queries, columns});
  check_tensor("lse", lse, wide_type(a.q), {batch, heads, queries});
  if (lse.device() != a.q.device())
    refuse("lse", a.q.device().str() + ", as q", lse.device().str());
}

std::string type_and_sizes(const at::Tensor& x) { return text(x.scalar_type(), x.sym_sizes()); }

void refuse(const std::string& argument, const std::string& expected, const std::string& got) {
  fail("attend: " + argument + ": expected " + expected + ", but got " + got);
}

void check_on_cpu(const char* argument, const at::Tensor& x, bool meta) {
  if (x.defined() && !x.is_cpu() && !(meta && x.is_meta()))
    refuse(argument, "a tensor on cpu, where plans are made", x.device().str());
}

void check_tensor(const char* argument, const at::Tensor& x, at::ScalarType type,
                  const std::vector<Size>& sizes) {
  if (!x.defined() || (x.scalar_type() == type && fits(x, sizes))) return;
  refuse(argument, text(type, sizes), type_and_sizes(x));
}

void check_like_q(const char* argument, const at::Tensor& x, const at::Tensor& q,
                  const std::vector<Size>& sizes) {
  if (!x.defined()) return;
  if (x.device() != q.device()) refuse(argument, q.device().str() + ", as q", x.device().str());
  if (wide_type(x) == wide_type(q) && fits(x, sizes)) return;
  const char* types = wide_type(q) == at::kFloat ? "Float, BFloat16 or Half" : "Double";
  refuse(argument, text(types, sizes), type_and_sizes(x));
}

}  // namespace sextant
