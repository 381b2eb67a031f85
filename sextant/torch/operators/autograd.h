// The autograd function of attend. It has two users: attend() in C++, which calls a backend
// directly, and the flat operator of Python, which calls operators below autograd so that tracers
// record them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/operators/tensor_plan.h"

namespace sextant {

// The two passes of one call of attention. Neither records gradients.
struct AttendCall {
  // (out, lse); a backward pass may follow.
  std::function<std::tuple<at::Tensor, at::Tensor>(const TensorData& data)> forward;
  std::function<Gradients(const at::Tensor& d_out, const at::Tensor& out, const at::Tensor& lse,
                          const Wanted& wanted, const TensorData& data)>
      backward;
};

// Whether any of the data would get a gradient.
bool wants_gradient(const TensorData& data);

// The results of run(), a function of `inputs`. They have no derivatives: a request for one throws
// Error.
std::vector<at::Tensor> without_derivatives(const std::vector<at::Tensor>& inputs,
                                            const std::function<std::vector<at::Tensor>()>& run);

// (out, lse) of a call, with first derivatives only.
std::tuple<at::Tensor, at::Tensor> differentiably(AttendCall call, const TensorData& data);

// attend() of tensors in memory, with a plan and a backend.

// (out, lse), differentiable, of data that check_data() has accepted.
std::tuple<at::Tensor, at::Tensor> attend_planned(const std::shared_ptr<const TensorPlan>& plan,
                                                  const TensorData& data);
// The same for meta tensors, which need no plan.
std::tuple<at::Tensor, at::Tensor> attend_shapes(const TensorData& data);

}  // namespace sextant
