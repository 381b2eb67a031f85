#include "sextant/torch/operands.h"

#include <memory>

#include "sextant/torch/operators/plan_cache.h"
#include "sextant/torch/operators/planned_call.h"
#include "sextant/torch/operators/query_blocks.h"
#include "sextant/torch/operators/shape_checks.h"
#include "sextant/torch/operators/tensor_data.h"

namespace sextant {

std::tuple<at::Tensor, at::Tensor> attend(const TensorOperands& operands) {
  if (operands.lazy_query_bias.rows) return attend_by_query(operands);
  TensorData data = data_of(operands);
  if (data.pages.defined() && wants_gradient(data)) gather_pages(data);
  check_data(data);
  if (data.q.is_meta()) return attend_shapes(data);
  if (!data.q.is_cpu()) refuse("q", "cpu or meta", data.q.device().str());
  const auto plan =
      operands.plans ? operands.plans->plan(operands.frames, operands.sweeps, data)
                     : std::make_shared<const TensorPlan>(operands.frames, operands.sweeps, data);
  return attend_planned(plan, data);
}

}  // namespace sextant
