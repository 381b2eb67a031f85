#include "sextant/torch/operators/planned_call.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include "sextant/torch/operators/run.h"

namespace sextant {
using BelowAutograd = at::AutoDispatchBelowADInplaceOrView;

std::tuple<at::Tensor, at::Tensor> attend_planned(std::shared_ptr<const TensorPlan> plan,
                                                  const TensorData& data) {
  if (!wants_gradient(data)) {
    const BelowAutograd guard;
    return run_attend(data, *plan, /*trains=*/false);
  }
  const auto forward = [plan](const TensorData& own) {
    const BelowAutograd guard;
    return run_attend(own, *plan, /*trains=*/true);
  };
  const auto backward = [plan](const at::Tensor& d_out, const at::Tensor& out,
                               const at::Tensor& lse, const Wanted& wanted, const TensorData& own) {
    const BelowAutograd guard;
    check_data(own);
    check_results(own, d_out, out, lse);
    return run_attend_backward(d_out, out, lse, wanted, own, *plan);
  };
  return differentiably({forward, backward}, data);
}

std::tuple<at::Tensor, at::Tensor> attend_shapes(const TensorData& data) {
  const auto forward = [](const TensorData& own) {
    const BelowAutograd guard;
    return new_results(own);
  };
  const auto backward = [](const at::Tensor&, const at::Tensor&, const at::Tensor&,
                           const Wanted& wanted, const TensorData& own) {
    const BelowAutograd guard;
    return new_gradients(own, wanted);
  };
  return differentiably({forward, backward}, data);
}

}  // namespace sextant
