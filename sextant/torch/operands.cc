#include "sextant/torch/operands.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/logaddexp.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <memory>
#include <utility>

#include "sextant/torch/operators/flat_operands.h"
#include "sextant/torch/operators/plan_cache.h"
#include "sextant/torch/operators/planned_call.h"
#include "sextant/torch/operators/query_blocks.h"
#include "sextant/torch/operators/shape_checks.h"
#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/operators/whole_lse.h"

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
  const at::Tensor sink = std::exchange(operands.sink, at::Tensor());
  operands.whole_lse = true;
  const auto [out, lse] = attend(operands);
  const at::Tensor whole = at::logaddexp(lse, sink.to(lse.scalar_type()).unsqueeze(1));
  return {(out.to(lse.scalar_type()) * (lse - whole).exp().unsqueeze(3)).to(out.scalar_type()),
          whole};
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> attend(const TensorOperands& operands) {
  if (operands.lazy_query_bias.rows) return attend_by_query(operands);
  if (operands.query_shift.defined() && operands.sink.defined()) return attend_then_sink(operands);
  const auto [out, lse] = attend_at_once(operands);
  return {out, operands.whole_lse ? whole_lse(operands, lse) : lse};
}

}  // namespace sextant
