// Runs a backend on tensors. It records no gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/operators/tensor_plan.h"

namespace sextant {

// Uninitialised results with the shapes and strides of attend's. `data` may be meta tensors.
std::tuple<at::Tensor, at::Tensor> new_results(const TensorData& data);
// Uninitialised gradients. A gradient that is not wanted has no elements, which tracers accept.
Gradients new_gradients(const TensorData& data, const Wanted& wanted);

// (out, lse) of data that check_data() has accepted. `trains`: a backward pass may follow.
std::tuple<at::Tensor, at::Tensor> run_attend(const TensorData& data, const TensorPlan& plan,
                                              bool trains);

// Gradients are summed in float32 or better and rounded once to the type of their operand.
Gradients run_attend_backward(const at::Tensor& d_out, const at::Tensor& out, const at::Tensor& lse,
                              Wanted wanted, const TensorData& data, const TensorPlan& plan);

}  // namespace sextant
