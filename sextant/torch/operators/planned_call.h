// attend() of tensors in memory, with a plan and a backend.
#pragma once

#include <memory>
#include <tuple>

#include "sextant/torch/operators/autograd.h"
#include "sextant/torch/operators/tensor_plan.h"

namespace sextant {

// (out, lse), differentiable, of data that check_data() has accepted.
std::tuple<at::Tensor, at::Tensor> attend_planned(std::shared_ptr<const TensorPlan> plan,
                                                  const TensorData& data);
// The same for meta tensors, which need no plan.
std::tuple<at::Tensor, at::Tensor> attend_shapes(const TensorData& data);

}  // namespace sextant
