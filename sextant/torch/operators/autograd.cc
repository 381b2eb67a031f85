// Derivatives of the operators. attend's backward pass is the operator attend_backward, so that a
// tracer sees it; attend_backward has none.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/operators/flat_operands.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::jit::Stack;

void call_below_autograd(const c10::OperatorHandle& op, Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  op.callBoxed(stack);
}

variable_list results(Stack& stack) {
  variable_list tensors;
  for (at::IValue& value : stack) tensors.push_back(std::move(value).toTensor());
  return tensors;
}

// Arguments as one value of the context. The differentiable ones are saved by autograd itself,
// which then notices if they are changed in place; here they are left out.
at::IValue save_rest(FlatOperands arguments) {
  for (at::Tensor* x : arguments.differentiable()) *x = at::Tensor();
  Stack stack;
  push(stack, arguments);
  return c10::ivalue::Tuple::create(std::move(stack));
}

FlatOperands load(const AutogradContext& context, const variable_list& saved) {
  Stack stack = context.saved_data.at("rest").toTupleRef().elements().vec();
  FlatOperands arguments = pop_arguments(stack);
  const auto of = arguments.differentiable();
  for (size_t n = 0; n < of.size(); ++n) *of[n] = saved[n];
  return arguments;
}

// Appends a column to the values and to what came of them, through which the gradient of lse flows.
// In
//
//   d score_ij = p_ij (d_out_i . v_j - d_out_i . out_i),    d lse_i / d score_ij = p_ij,
//
// a column that is 0 in every value and, in query i, 1 in d_out and -d_lse_i in out adds p_ij
// d_lse_i.
void add_lse_column(const at::Tensor& d_lse, at::Tensor& d_out, at::Tensor& out,
                    FlatOperands& arguments) {
  const auto padded = [](const at::Tensor& x, double with) {
    return x.defined() ? at::constant_pad_nd(x, {0, 1}, with) : x;
  };
  d_out = padded(d_out.defined() ? d_out : at::zeros_like(out), 1);
  out = at::cat({out, -d_lse.unsqueeze(-1)}, -1);
  arguments.v = padded(arguments.v, 0);
  arguments.on_value = padded(arguments.on_value, 0);
}

// `inputs` are the differentiable arguments that are there: autograd knows them by their place in
// this list, and undefined tensors may not stand in it.
class Attend : public torch::autograd::Function<Attend> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList /*inputs*/,
                               FlatOperands arguments, const c10::OperatorHandle& op) {
    Stack stack;
    push(stack, arguments);
    call_below_autograd(op, stack);
    variable_list outputs = results(stack);

    variable_list saved;
    for (const at::Tensor* x : arguments.differentiable()) saved.push_back(*x);
    saved.insert(saved.end(), outputs.begin(), outputs.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["rest"] = save_rest(std::move(arguments));
    context->set_materialize_grads(false);
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    FlatOperands arguments = load(*context, saved);
    at::Tensor d_out = d_outputs[0], out = saved[kDifferentiable];
    const at::Tensor& d_lse = d_outputs[1];
    if (d_lse.defined() && arguments.key_bias.defined())
      fail("attend: key_bias: expected no gradient of lse, which is relative to it, but got one");
    if (d_lse.defined()) add_lse_column(d_lse, d_out, out, arguments);
    variable_list d_inputs;
    Wanted wanted = {};
    size_t inputs = 0;
    for (size_t n = 0; n < kDifferentiable; ++n)
      if (saved[n].defined()) wanted[n] = context->needs_input_grad(inputs++);
    if (d_out.defined()) {
      static const auto op =
          c10::Dispatcher::singleton().findSchemaOrThrow("sextant::attend_backward", "");
      Stack stack;
      torch::jit::push(stack, d_out, out, saved[kDifferentiable + 1], wanted);
      push(stack, arguments);
      op.callBoxed(stack);
      const auto operands = arguments.differentiable();
      for (size_t n = 0; n < kDifferentiable; ++n) {
        if (!saved[n].defined()) continue;
        at::Tensor grad = wanted[n] ? stack[n].toTensor() : at::Tensor();
        const bool has_column = operands[n] == &arguments.v || operands[n] == &arguments.on_value;
        if (d_lse.defined() && grad.defined() && has_column) grad = grad.slice(-1, 0, -1);
        d_inputs.push_back(std::move(grad));
      }
    }
    d_inputs.resize(inputs + 2);  // and nothing for `arguments` and `op`
    return d_inputs;
  }
};

// The backward pass does not read pages; a forward pass that will be differentiated reads what they
// hold.
bool wants_gradient(const FlatOperands& arguments) {
  if (!at::GradMode::is_enabled()) return false;
  FlatOperands a = arguments;
  return std::ranges::any_of(
      a.differentiable(), [](const at::Tensor* x) { return x->defined() && x->requires_grad(); });
}

void attend_autograd(const c10::OperatorHandle& op, Stack* stack) {
  FlatOperands arguments = pop_arguments(*stack);
  if (arguments.pages.defined() && wants_gradient(arguments))
    arguments = without_pages(std::move(arguments));
  variable_list inputs;
  for (const at::Tensor* x : arguments.differentiable())
    if (x->defined()) inputs.push_back(*x);
  for (at::Tensor& out : Attend::apply(at::TensorList(inputs), std::move(arguments), op))
    stack->emplace_back(std::move(out));
}

class AttendBackward : public torch::autograd::Function<AttendBackward> {
 public:
  static variable_list forward(AutogradContext*, at::TensorList /*inputs*/, Stack stack,
                               const c10::OperatorHandle& op) {
    call_below_autograd(op, stack);
    return results(stack);
  }

  static variable_list backward(AutogradContext*, const variable_list&) {
    fail(
        "attend_backward: expected no derivative of its results (attend has first derivatives "
        "only), but got a request for one");
  }
};

void attend_backward_autograd(const c10::OperatorHandle& op, Stack* stack) {
  Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  variable_list inputs;
  for (const at::IValue& value : arguments)
    if (value.isTensor() && value.toTensor().requires_grad()) inputs.push_back(value.toTensor());
  for (at::Tensor& grad : AttendBackward::apply(at::TensorList(inputs), std::move(arguments), op))
    stack->emplace_back(std::move(grad));
}

}  // namespace

TORCH_LIBRARY_IMPL(sextant, Autograd, library) {
  library.impl("attend", torch::CppFunction::makeFromBoxedFunction<&attend_autograd>());
  library.impl("attend_backward",
               torch::CppFunction::makeFromBoxedFunction<&attend_backward_autograd>());
}

}  // namespace sextant
