// Checkpointing (Chen, Xu, Zhang and Guestrin 2016, arXiv 1604.06174): the backward pass repeats
// the forward computation, so no intermediate results are kept.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace sextant {

// For backward passes that do not record gradients: throws Error that names `what` if second
// derivatives are requested.
void expect_first_derivative(const char* what);

using TensorFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// The gradients of the sum of d_outs[n] * run(inputs)[n], without the results whose d_out is
// undefined, computed immediately. The gradient of an input on which the sum does not depend is
// undefined.
std::vector<at::Tensor> gradients_of_results(const TensorFunction& run,
                                             const std::vector<at::Tensor>& inputs,
                                             const std::vector<at::Tensor>& d_outs);
// The same with d_outs that are a function of the results: d_results(run(inputs)).
std::vector<at::Tensor> gradients_by_results(const TensorFunction& run,
                                             const std::vector<at::Tensor>& inputs,
                                             const TensorFunction& d_results);

// run(inputs), with first derivatives. `run` must not capture other tensors that need gradients.
// The backward pass costs a second forward pass.
std::vector<at::Tensor> checkpointed(TensorFunction run, const std::vector<at::Tensor>& inputs);

}  // namespace sextant
