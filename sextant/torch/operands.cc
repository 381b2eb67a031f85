#include "sextant/torch/operands.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logaddexp.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sextant/attention/key_bias.h"
#include "sextant/torch/operators/autograd.h"
#include "sextant/torch/operators/flat_operands.h"
#include "sextant/torch/operators/query_blocks.h"
#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/operators/tensor_plan.h"
#include "sextant/torch/operators/views.h"

namespace sextant {

namespace {

std::tuple<at::Tensor, at::Tensor> attend_by_operator(const TensorOperands& operands) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("sextant::attend", "");
  torch::jit::Stack stack;
  push(stack, flat_of(operands));
  op.callBoxed(stack);
  return {stack[0].toTensor(), stack[1].toTensor()};
}

std::tuple<at::Tensor, at::Tensor> attend_at_once(const TensorOperands& operands) {
  // Modes of __torch_dispatch__ (tracers, counters) see the operator, not the kernels.
  if (c10::impl::dispatch_mode_enabled()) return attend_by_operator(operands);
  TensorData data = operands;
  if (data.pages.defined() && wants_gradient(data)) gather_pages(data);
  check_data(data);
  if (data.q.is_meta()) return attend_shapes(data);
  const auto plan =
      operands.plans ? operands.plans->plan(operands.frames, operands.sweeps, data)
                     : std::make_shared<const TensorPlan>(operands.frames, operands.sweeps, data);
  return attend_planned(plan, data);
}

// Adds the sink to results without it: kernels compare a sink with scores that lack query_shift.
std::tuple<at::Tensor, at::Tensor> attend_then_sink(TensorOperands operands) {
  at::Tensor sink = std::exchange(operands.query_sink, at::Tensor());
  if (!sink.defined()) sink = std::exchange(operands.sink, at::Tensor()).unsqueeze(1);
  operands.whole_lse = true;
  const auto [out, lse] = attend(operands);
  const at::Tensor whole = at::logaddexp(lse, sink.to(lse.scalar_type()));
  return {(out.to(lse.scalar_type()) * (lse - whole).exp().unsqueeze(3)).to(out.scalar_type()),
          whole};
}

// The bias that kernels subtract from the scores of each query, float64 [batch, heads, queries] on
// the CPU. The biases of another device are copied, so the call waits for it.
at::Tensor subtracted_bias(const TensorOperands& o) {
  const int64_t batch = o.q.size(0), heads = o.q.size(1), queries = o.q.size(2);
  std::vector<std::vector<KeyRange>> ranges;
  std::vector<Sweep> sweeps;
  for (const SweepOperand& sweep : o.sweeps) {
    ranges.push_back(values_of<KeyRange>(sweep.key_ranges));
    sweeps.push_back({.key_ranges = ranges.back().data(),
                      .batch_stride = sweep.key_ranges.size(0) > 1 ? queries : 0});
  }
  const at::Tensor bias = o.key_bias.detach().to(at::kCPU).expand({batch, heads, -1});
  const HostView view(view_rows<const double>(bias));
  const KeyBiasOrigins origins(view, values_of<Frame>(o.frames), sweeps, queries);
  at::Tensor all = at::empty({batch, heads, queries}, at::kDouble);
  double* to = all.data_ptr<double>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < queries; ++i) *to++ = origins.at(b, h, i);
  return all;
}

// lse, a result of attend(), with the terms of all its scores: plus the largest key_bias that each
// query sees, which kernels subtract (sextant/attention/key_bias.h), and the query_shift. The bias
// is added as a constant: its gradients flow through lse (autograd.cc).
at::Tensor whole_lse(const TensorOperands& o, const at::Tensor& lse) {
  if (o.q.is_meta()) return lse;
  // Biases and shifts may be sums over thousands of keys, of which the differences matter.
  at::Tensor more = o.query_shift;
  if (o.key_bias.defined() && o.key_bias.size(-1) > 0) {
    const at::Tensor bias = subtracted_bias(o).to(o.q.device());
    more = more.defined() ? more + bias : bias;
  }
  return more.defined() ? lse + more.to(lse.options()) : lse;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> attend(const TensorOperands& operands) {
  if (operands.lazy_query_bias.rows) return attend_by_query(operands);
  if (operands.query_shift.defined() && (operands.sink.defined() || operands.query_sink.defined()))
    return attend_then_sink(operands);
  const auto [out, lse] = attend_at_once(operands);
  return {out, operands.whole_lse ? whole_lse(operands, lse) : lse};
}

}  // namespace sextant
