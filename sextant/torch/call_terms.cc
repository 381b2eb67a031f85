#include "sextant/torch/call_terms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_and.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "sextant/attention/plan.h"
#include "sextant/base/error.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

std::string got(const at::Tensor& x) {
  std::ostringstream out;
  out << ", but got " << x.scalar_type() << " " << x.sizes();
  return out.str();
}

int64_t keys_of(const TensorOperands& o) { return o.pages.defined() ? o.key_rows : o.k.size(2); }

void add_sink(TensorOperands& o, const at::Tensor& sink) {
  if (o.sink.defined() || o.query_sink.defined())
    fail("sink: expected none, as the method has a sink of its own, but got another");
  const at::Tensor& q = o.q;
  const bool of_queries = sink.dim() == 3;
  if (!at::isFloatingType(sink.scalar_type()) ||
      sink.sizes() != (of_queries ? q.sizes().slice(0, 3) : q.sizes().slice(1, 1)))
    fail("sink: expected floating [" + std::to_string(q.size(1)) +
         "], a score for each head, or [" + std::to_string(q.size(0)) + ", " +
         std::to_string(q.size(1)) + ", " + std::to_string(q.size(2)) +
         "], one for each query too" + got(sink));
  const at::Tensor wide = sink.to(wide_type(o.q));
  // The values of a device are not checked: the call would wait for it.
  if (wide.is_cpu() && !(wide < std::numeric_limits<double>::infinity()).all().item<bool>())
    fail("sink: expected numbers or -infinity, but got NaN or infinity");
  (of_queries ? o.query_sink : o.sink) = wide;
}

// [1 or batch, 1 or heads, keys] in float64
at::Tensor as_key_bias(const TensorOperands& o, at::Tensor bias) {
  const at::Tensor given = bias;
  if (bias.dim() == 1) bias = bias.unsqueeze(0);
  if (bias.dim() == 2) bias = bias.unsqueeze(1);
  const int64_t batch = o.q.size(0), heads = o.q.size(1), keys = keys_of(o);
  const auto one_or = [](int64_t size, int64_t all) { return size == 1 || size == all; };
  if (!at::isFloatingType(bias.scalar_type()) || bias.dim() != 3 || !one_or(bias.size(0), batch) ||
      !one_or(bias.size(1), heads) || bias.size(2) != keys)
    fail(
        "key_bias: expected floating [keys], [batch, keys] or [batch, 1 or heads, keys] with "
        "batch " +
        std::to_string(batch) + ", heads " + std::to_string(heads) + " and keys " +
        std::to_string(keys) + got(given));
  return bias.to(at::kDouble);
}

void add_key_bias(TensorOperands& o, const at::Tensor& given) {
  at::Tensor bias = as_key_bias(o, given);
  // The biases of a device may hide keys, and other values are not checked: the call would wait.
  const at::Tensor finite = bias.isfinite();
  if (!bias.is_cpu() || !finite.all().item<bool>()) {
    const at::Tensor hidden = bias == -std::numeric_limits<double>::infinity();
    if (bias.is_cpu() && !(hidden | finite).all().item<bool>())
      fail("key_bias: expected numbers or -infinity, but got NaN or infinity");
    const at::Tensor shown = hidden.logical_not().unsqueeze(2);
    o.mask = o.mask.defined() ? at::logical_and(o.mask, shown) : shown;
    bias = bias.masked_fill(hidden, 0);
  }
  o.key_bias = o.key_bias.defined() ? o.key_bias + bias : bias;
}

void add_window(TensorOperands& o, const Layout& layout, const DistanceWindow& window) {
  for (const int64_t side : {window.left, window.right})
    if (side < DistanceWindow::kNoLimit)
      fail("window: expected at least 0 on each side, or -1 for no limit, but got " +
           std::to_string(side));
  const auto reach = [](int64_t side) {
    return side < 0 ? kFarthestPosition : std::min(side, kFarthestPosition);
  };
  const at::Tensor near = near_ranges(layout, reach(window.left), reach(window.right));
  for (SweepOperand& sweep : o.sweeps) sweep.key_ranges = intersection(sweep.key_ranges, near);
}

}  // namespace

void set_scale(TensorOperands& operands, const CallTerms& terms) {
  if (!terms.scale) return;
  if (!std::isfinite(*terms.scale) || *terms.scale <= 0)
    fail("scale: expected a finite number above 0, but got " + std::to_string(*terms.scale));
  operands.scale = *terms.scale;
  operands.scale_is_given = true;
}

void add_terms(TensorOperands& operands, const Layout& layout, const CallTerms& terms) {
  if (terms.window) add_window(operands, layout, *terms.window);
  if (terms.key_bias.defined()) add_key_bias(operands, terms.key_bias);
  if (terms.sink.defined()) add_sink(operands, terms.sink);
  if (terms.softcap != 0 && operands.softcap != 0)
    fail("softcap: expected none, as the method has a softcap of its own, but got another");
  if (terms.softcap != 0) operands.softcap = terms.softcap;
  if (terms.dropout.p != 0) operands.dropout = terms.dropout;
}

}  // namespace sextant
