// Results that are computed once more when their gradients are asked for, so that nothing of the
// computation is kept in between (checkpointing: Chen, Xu, Zhang and Guestrin 2016, arXiv
// 1604.06174).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace sextant {

// For backward passes that compute with numbers: throws Error that names `what` if a derivative of
// the gradients is asked for.
void expect_first_derivative(const char* what);

// The gradients of sum(d_out * run(inputs)), computed on the spot; undefined where it does not
// depend on an input.
std::vector<at::Tensor> gradients_at(
    const std::function<at::Tensor(const std::vector<at::Tensor>&)>& run,
    const std::vector<at::Tensor>& inputs, const at::Tensor& d_out);

// run(inputs). The first result is differentiable, once; the others are not. `run` must be a
// function of its inputs: it holds no other tensor that gradients should go to. Costs a second
// forward pass.
std::vector<at::Tensor> checkpointed(
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> run,
    const std::vector<at::Tensor>& inputs);

}  // namespace sextant
