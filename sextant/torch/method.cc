#include "sextant/torch/method.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

std::string sequence(at::IntArrayRef sizes) {
  std::string result;
  for (const int64_t size : sizes) result += (result.empty() ? "" : ", ") + std::to_string(size);
  return "[" + result + "]";
}

void check_parameters(const Method& method, Parameters parameters) {
  const std::vector<ParameterSpec> specs = method.parameters();
  if (specs.size() != parameters.size())
    fail("method: parameters: expected " + std::to_string(specs.size()) + ", but got " +
         std::to_string(parameters.size()));
  for (size_t n = 0; n < specs.size(); ++n)
    if (parameters[n].sizes() != at::IntArrayRef(specs[n].sizes))
      fail("method: parameter " + specs[n].name + ": expected shape " + sequence(specs[n].sizes) +
           ", but got " + sequence(parameters[n].sizes()));
}

}  // namespace

at::Tensor Method::embed(const at::Tensor& x, const Layout&, Parameters) const { return x; }
at::Tensor Method::embed_last(const at::Tensor& x, const Layout&, Parameters) const { return x; }
at::Tensor Method::key_columns(const at::Tensor&, int64_t, Parameters) const { return {}; }
void Method::apply(TensorOperands&, const Layout&, int64_t, Parameters) const {}

TensorOperands plain_operands(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const Layout& layout) {
  if (q.dim() != 4) fail("attend: q: expected 4 dimensions, but got " + std::to_string(q.dim()));
  const auto head_dim = static_cast<double>(std::max<int64_t>(q.size(3), 1));
  TensorOperands o;
  o.q = q, o.k = k, o.v = v;
  o.scale = 1 / std::sqrt(head_dim);
  o.frames = frames(layout);
  o.sweeps = {{.key_ranges = visible_ranges(layout)}};
  o.farthest = layout.farthest_distance();
  o.mask = layout.mask;
  o.plans = layout.plans;
  return o;
}

at::Tensor with_key_columns(const Method& method, const at::Tensor& k, const at::Tensor& x,
                            int64_t layer, Parameters parameters) {
  check_parameters(method, parameters);
  const at::Tensor more = method.key_columns(to_float(x), layer, all_to_float(parameters));
  return more.defined() ? at::cat({k, more.to(k.scalar_type())}, 3) : k;
}

TensorOperands applied(const Method& method, TensorOperands operands, const Layout& layout,
                       int64_t layer, Parameters parameters, const CallTerms& terms) {
  check_parameters(method, parameters);
  if ((layout.query_rotary_positions.defined() || layout.key_rotary_positions.defined()) &&
      !method.reads_rotary_positions())
    fail(
        "method: query_rotary_positions, key_rotary_positions: expected none, as the method does "
        "not go by them");
  const bool dresses = method.changes_keys();
  const std::array<at::Tensor*, 3> rows = {&operands.q, &operands.k, &operands.v};
  std::array<at::Tensor, 3> given, handed;
  for (size_t n = 0; n < rows.size(); ++n) {
    given[n] = *rows[n];
    handed[n] = *rows[n] = n == 0 || dresses ? to_float(given[n]) : given[n];
  }
  set_scale(operands, terms);
  method.apply(operands, layout, layer, all_to_float(parameters));
  for (size_t n = 0; n < rows.size(); ++n) {
    if (rows[n]->is_same(handed[n]))
      *rows[n] = given[n];
    else if (n > 0 && !dresses)
      fail("method: changes_keys: expected true, as apply() changes keys or values, but got false");
  }
  add_terms(operands, layout, terms);
  return operands;
}

at::Tensor attend_with(const Method& method, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const Layout& layout, int64_t layer,
                       Parameters parameters, const CallTerms& terms) {
  const TensorOperands operands =
      applied(method, plain_operands(q, k, v, layout), layout, layer, parameters, terms);
  return std::get<0>(attend(operands)).to(q.scalar_type());
}

std::tuple<at::Tensor, at::Tensor> attend_with_lse(const Method& method, const at::Tensor& q,
                                                   const at::Tensor& k, const at::Tensor& v,
                                                   const Layout& layout, int64_t layer,
                                                   Parameters parameters, const CallTerms& terms) {
  TensorOperands operands =
      applied(method, plain_operands(q, k, v, layout), layout, layer, parameters, terms);
  operands.whole_lse = true;
  const auto [out, lse] = attend(operands);
  return {out.to(q.scalar_type()), lse};
}

}  // namespace sextant
