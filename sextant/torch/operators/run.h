// Runs a backend on tensors. It records no gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "sextant/attention/attend.h"
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

// The choice of a backend for a call of the operators.

// CUDA tensors have one backend. On the CPU it depends on the type and length of q and on
// torch.set_float32_matmul_precision(): "medium" permits factors to be rounded to bfloat16 if the
// machine multiplies these, "high" permits sums of products of bfloat16 terms.
const Backend& forward_backend(const at::Tensor& q);
const Backend& backward_backend(const at::Tensor& q);

// During its lifetime, this thread's calls that are computed in float32, on the device of the given
// backend, use it.
class BackendOverride {
 public:
  explicit BackendOverride(const Backend& backend);
  ~BackendOverride();
  BackendOverride(const BackendOverride&) = delete;
  BackendOverride& operator=(const BackendOverride&) = delete;

 private:
  const Backend* before_;
};

}  // namespace sextant
