// The library `sextant` of libtorch operators: attend and attend_backward, for tensors in memory
// (CPU), on a GPU (CUDA), and for tensors without data (Meta).
//
// The kernels are boxed: they pop their arguments from a stack. So flat_operands.h lists the
// arguments once, instead of six signatures.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sextant/torch/operators/autograd.h"
#include "sextant/torch/operators/flat_operands.h"
#include "sextant/torch/operators/operator_tags.h"
#include "sextant/torch/operators/run.h"
#include "sextant/torch/operators/tensor_plan.h"

namespace sextant {
namespace {

using torch::jit::Stack;

// The plan of arguments. Those of recent calls on a device are kept, as their copies there are.
std::shared_ptr<const TensorPlan> plan_of(const FlatOperands& a) {
  constexpr size_t kMost = 8;
  // Never destroyed: at the end of a program, CUDA may be gone before the memory of plans.
  static auto* const plans = new PlanCache(kMost);
  return a.q.is_cuda() ? plans->plan(a.frames, sweeps_of(a), a)
                       : std::make_shared<const TensorPlan>(a.frames, sweeps_of(a), a);
}

void attend_kernel(const c10::OperatorHandle&, Stack* stack) {
  const FlatOperands a = pop_arguments(*stack);
  check_arguments(a);
  const auto [out, lse] = run_attend(a, *plan_of(a), /*trains=*/false);
  torch::jit::push(*stack, out, lse);
}

void attend_meta(const c10::OperatorHandle&, Stack* stack) {
  const FlatOperands a = pop_arguments(*stack);
  check_arguments(a);
  const auto [out, lse] = new_results(a);
  torch::jit::push(*stack, out, lse);
}

struct BackwardArguments {
  at::Tensor d_out, out, lse;
  Wanted wanted;
  FlatOperands operands;

  explicit BackwardArguments(Stack& stack) : operands(pop_arguments(stack)) {
    torch::jit::pop(stack, d_out, out, lse, wanted);
    check_arguments(operands);
    check_results(operands, d_out, out, lse);
    const auto all = differentiable(operands);
    for (size_t n = 0; n < wanted.size(); ++n) wanted[n] = wanted[n] && all[n]->defined();
  }
};

void attend_backward_kernel(const c10::OperatorHandle&, Stack* stack) {
  const BackwardArguments a(*stack);
  const FlatOperands& o = a.operands;
  for (const at::Tensor& grad :
       run_attend_backward(a.d_out, a.out, a.lse, a.wanted, o, *plan_of(o)))
    stack->emplace_back(grad);
}

void attend_backward_meta(const c10::OperatorHandle&, Stack* stack) {
  const BackwardArguments a(*stack);
  for (const at::Tensor& grad : new_gradients(a.operands, a.wanted)) stack->emplace_back(grad);
}

// Calls the operators below autograd through the dispatcher, so that a tracer records them.
AttendCall dispatched(FlatOperands given, const c10::OperatorHandle& op) {
  for (at::Tensor* x : differentiable(given)) *x = at::Tensor();
  const auto push_with = [given = std::move(given)](Stack& stack, const TensorData& data) {
    FlatOperands all = given;
    static_cast<TensorData&>(all) = data;
    push(stack, all);
  };
  const auto forward = [op, push_with](const TensorData& data) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    Stack stack;
    push_with(stack, data);
    op.callBoxed(stack);
    return std::tuple(stack[0].toTensor(), stack[1].toTensor());
  };
  const auto backward = [push_with](const at::Tensor& d_out, const at::Tensor& out,
                                    const at::Tensor& lse, const Wanted& wanted,
                                    const TensorData& data) {
    static const auto backward_op =
        c10::Dispatcher::singleton().findSchemaOrThrow("sextant::attend_backward", "");
    const at::AutoDispatchBelowADInplaceOrView guard;
    Stack stack;
    torch::jit::push(stack, d_out, out, lse, wanted);
    push_with(stack, data);
    backward_op.callBoxed(stack);
    Gradients grads;
    for (size_t n = 0; n < grads.size(); ++n) grads[n] = stack[n].toTensor();
    return grads;
  };
  return {forward, backward};
}

// The backward pass does not read pages, so a call that needs gradients gathers them first.
void attend_autograd(const c10::OperatorHandle& op, Stack* stack) {
  FlatOperands arguments = pop_arguments(*stack);
  if (arguments.pages.defined() && wants_gradient(arguments)) gather_pages(arguments);
  const TensorData data = arguments;
  const auto [out, lse] = differentiably(dispatched(std::move(arguments), op), data);
  torch::jit::push(*stack, out, lse);
}

void attend_backward_autograd(const c10::OperatorHandle& op, Stack* stack) {
  Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  std::vector<at::Tensor> inputs;
  for (const at::IValue& value : arguments)
    if (value.isTensor() && value.toTensor().requires_grad()) inputs.push_back(value.toTensor());
  const auto grads = without_derivatives(inputs, [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    op.callBoxed(arguments);
    std::vector<at::Tensor> results;
    for (at::IValue& value : arguments) results.push_back(std::move(value).toTensor());
    return results;
  });
  for (const at::Tensor& grad : grads) stack->emplace_back(grad);
}

void add_kernels(torch::Library& library) {
  library.impl("attend", torch::CppFunction::makeFromBoxedFunction<&attend_kernel>());
  library.impl("attend_backward",
               torch::CppFunction::makeFromBoxedFunction<&attend_backward_kernel>());
}

}  // namespace

TORCH_LIBRARY(sextant, library) {
  const std::string operands = arguments_schema();
  const std::string attend = "attend(" + operands + ") -> (Tensor out, Tensor lse)";
  std::string gradients;
  each_differentiable([&](auto operand) {
    gradients += (gradients.empty() ? "Tensor d_" : ", Tensor d_") + std::string(operand.name);
  });
  const std::string backward = "attend_backward(Tensor d_out, Tensor out, Tensor lse, bool[" +
                               std::to_string(kDifferentiable) + "] wanted, " + operands +
                               ") -> (" + gradients + ")";
  const std::vector<at::Tag> tagged = operator_tags();
  library.def(attend.c_str(), tagged);
  library.def(backward.c_str(), tagged);
}

TORCH_LIBRARY_IMPL(sextant, CPU, library) { add_kernels(library); }
TORCH_LIBRARY_IMPL(sextant, CUDA, library) { add_kernels(library); }

TORCH_LIBRARY_IMPL(sextant, Meta, library) {
  library.impl("attend", torch::CppFunction::makeFromBoxedFunction<&attend_meta>());
  library.impl("attend_backward",
               torch::CppFunction::makeFromBoxedFunction<&attend_backward_meta>());
}

TORCH_LIBRARY_IMPL(sextant, Autograd, library) {
  library.impl("attend", torch::CppFunction::makeFromBoxedFunction<&attend_autograd>());
  library.impl("attend_backward",
               torch::CppFunction::makeFromBoxedFunction<&attend_backward_autograd>());
}

}  // namespace sextant
