// Operators of methods as a tracer (torch.compile) sees them: one opaque operator, whose backward
// operator NAME_backward(d_results..., arguments...) runs the method again and returns the
// gradients of the differentiable arguments in their order.
//
// The functions are boxed, so that they are the same for all these operators. They find the
// differentiable arguments by their names in the schema: parameters, x, q, k, v, sink and key_bias.
// Tensors of integers in `parameters` are row maps, which have no gradient.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace sextant {

// For Autograd: calls the operator's function, whose tensor functions autograd records; or, if a
// tracer records the call, the operator itself. Throws Error for tensors inside a transform of
// torch.func.
void call_differentiably(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// For the backward operator: with tensors in memory, and without.
void call_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack);
void backward_shapes(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// torch.autocast during the tensor code of methods.

// Products of methods, such as DeBERTa's projections, keep their type on a CUDA device.
struct WithoutCudaAutocast {
  const c10::impl::ExcludeDispatchKeyGuard guard{
      c10::DispatchKeySet(c10::DispatchKey::AutocastCUDA)};
};

}  // namespace sextant
