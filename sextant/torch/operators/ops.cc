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
#include "sextant/torch/operators/plan_cache.h"
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
    for (size_t n = 0; n < wanted.size(); ++n)
      wanted[n] = wanted[n] && operands.differentiable()[n]->defined();
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
class Dispatched final : public AttendCall {
 public:
  Dispatched(FlatOperands arguments, const c10::OperatorHandle& op)
      : arguments_(std::move(arguments)), op_(op) {
    for (at::Tensor* x : arguments_.differentiable()) *x = at::Tensor();
  }

  std::tuple<at::Tensor, at::Tensor> forward(const TensorData& data, bool) const override {
    const at::AutoDispatchBelowADInplaceOrView guard;
    Stack stack;
    push(stack, with(data));
    op_.callBoxed(stack);
    return {stack[0].toTensor(), stack[1].toTensor()};
  }

  Gradients backward(const at::Tensor& d_out, const at::Tensor& out, const at::Tensor& lse,
                     const Wanted& wanted, const TensorData& data) const override {
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("sextant::attend_backward", "");
    Stack stack;
    torch::jit::push(stack, d_out, out, lse, wanted);
    push(stack, with(data));
    op.callBoxed(stack);
    Gradients grads;
    for (size_t n = 0; n < grads.size(); ++n) grads[n] = stack[n].toTensor();
    return grads;
  }

 private:
  FlatOperands with(const TensorData& data) const {
    FlatOperands all = arguments_;
    static_cast<TensorData&>(all) = data;
    return all;
  }

  FlatOperands arguments_;
  c10::OperatorHandle op_;
};

// The backward pass does not read pages, so a call that needs gradients gathers them first.
void attend_autograd(const c10::OperatorHandle& op, Stack* stack) {
  FlatOperands arguments = pop_arguments(*stack);
  if (arguments.pages.defined() && wants_gradient(arguments)) gather_pages(arguments);
  const TensorData data = arguments;
  const auto [out, lse] =
      differentiably(std::make_shared<Dispatched>(std::move(arguments), op), data);
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
  const std::string operands = kArgumentsSchema;
  const std::string attend = "attend(" + operands + ") -> (Tensor out, Tensor lse)";
  const std::string backward =
      "attend_backward(Tensor d_out, Tensor out, Tensor lse, bool[12] wanted, " + operands +
      ") -> (Tensor d_q, Tensor d_k, Tensor d_v, Tensor d_q_imag, Tensor d_weight, Tensor d_bias, "
      "Tensor d_on_query, Tensor d_on_key, Tensor d_on_value, Tensor d_sink, Tensor d_query_bias, "
      "Tensor d_key_bias)";
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
