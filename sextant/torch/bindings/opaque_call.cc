// The dispatcher's boxed calls (a stack of IValues) serve all operators of method_ops.cc alike.
// Without a tracer, an operator's function runs and autograd records the tensor functions that it
// calls. A tracer sees one node instead, whose backward operator runs the function again and
// differentiates it. Tensors with gradients are found by their names in the schema.
#include "sextant/torch/bindings/opaque_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/operators/checkpointed.h"

namespace sextant {
namespace {

using c10::OperatorHandle;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::jit::Stack;

// Calls f for every tensor among the arguments that has a gradient, in the order of the schema, and
// puts its result in the tensor's place. Row maps, which are integers, have none.
template <class F>
void each_differentiable(const c10::FunctionSchema& schema, Stack& arguments, F&& f) {
  constexpr std::array<std::string_view, 7> kNames = {"parameters", "x",    "q",       "k",
                                                      "v",          "sink", "key_bias"};
  for (size_t n = 0; n < arguments.size(); ++n) {
    if (std::ranges::find(kNames, schema.arguments()[n].name()) == kNames.end()) continue;
    if (arguments[n].isTensor()) {
      arguments[n] = f(arguments[n].toTensor());
    } else if (!arguments[n].isNone()) {
      std::vector<at::Tensor> list = arguments[n].toTensorVector();
      for (at::Tensor& x : list)
        if (!x.defined() || x.is_floating_point()) x = f(x);
      arguments[n] = list;
    }
  }
}

variable_list differentiable(const OperatorHandle& op, Stack arguments) {
  variable_list tensors;
  each_differentiable(op.schema(), arguments, [&](const at::Tensor& x) {
    tensors.push_back(x);
    return x;
  });
  return tensors;
}

Stack with_differentiable(const OperatorHandle& op, Stack arguments, const variable_list& tensors) {
  auto next = tensors.begin();
  each_differentiable(op.schema(), arguments, [&](const at::Tensor&) { return *next++; });
  return arguments;
}

OperatorHandle find_operator(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "");
}

constexpr std::string_view kBackward = "_backward";

// The operator of which this is the backward operator.
OperatorHandle forward_of(const OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return find_operator(name.substr(0, name.size() - kBackward.size()));
}

// Wrapped tensors have no memory. Python's sextant handles the transforms of torch.func itself.
void refuse_transforms(const variable_list& tensors) {
  for (const at::Tensor& x : tensors)
    if (x.key_set().has(c10::DispatchKey::FuncTorchBatched) ||
        x.key_set().has(c10::DispatchKey::FuncTorchGradWrapper))
      fail(
          "sextant: expected tensors without transforms of torch.func, which need torch 2.1 or "
          "later and functions of the package sextant, but got a tensor inside one");
}

// Whether a tracer records the tensors, or any of them has no data.
bool traced(const variable_list& tensors) {
  return std::ranges::any_of(tensors, [](const at::Tensor& x) {
    const c10::DispatchKeySet keys = x.key_set();
    return x.is_meta() || keys.has(c10::DispatchKey::Python) ||
           keys.has(c10::DispatchKey::Functionalize);
  });
}

// Calls the function of an operator with autograd recording what it calls.
void call_function(const OperatorHandle& op, const at::Tensor& like, Stack& stack) {
  const auto key = like.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
  op.redispatchBoxed(c10::DispatchKeySet(key), &stack);
}

variable_list take_tensors(Stack& stack) {
  variable_list tensors;
  for (at::IValue& value : stack) tensors.push_back(std::move(value).toTensor());
  return tensors;
}

class Opaque : public torch::autograd::Function<Opaque> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList inputs, Stack arguments,
                               const OperatorHandle& op) {
    context->save_for_backward(inputs.vec());
    Stack stack = arguments;
    {
      const at::AutoDispatchBelowADInplaceOrView guard;
      op.callBoxed(stack);
    }
    arguments = with_differentiable(op, std::move(arguments), variable_list(inputs.size()));
    context->saved_data["operator"] = op.schema().name();
    context->saved_data["arguments"] = c10::ivalue::Tuple::create(std::move(arguments));
    return take_tensors(stack);
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_results) {
    const std::string name = context->saved_data.at("operator").toStringRef();
    Stack arguments = with_differentiable(
        find_operator(name), context->saved_data.at("arguments").toTupleRef().elements().vec(),
        context->get_saved_variables());
    arguments.insert(arguments.begin(), d_results.begin(), d_results.end());
    find_operator(name + std::string(kBackward)).callBoxed(arguments);
    variable_list grads = arguments[0].toTensorVector();
    grads.resize(grads.size() + 2);  // `arguments` and `op` have no gradients
    return grads;
  }
};

// The arguments of a backward operator: the gradients of the results, and those of its operator.
struct BackwardCall {
  OperatorHandle op;
  variable_list d_results;
  Stack arguments;

  BackwardCall(const OperatorHandle& backward, Stack& stack) : op(forward_of(backward)) {
    arguments = torch::jit::pop(stack, backward.schema().arguments().size());
    const auto results = static_cast<std::ptrdiff_t>(op.schema().returns().size());
    Stack first(arguments.begin(), arguments.begin() + results);
    d_results = take_tensors(first);
    arguments.erase(arguments.begin(), arguments.begin() + results);
  }
};

}  // namespace

void call_differentiably(const OperatorHandle& op, Stack* stack) {
  const auto count = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  Stack arguments(stack->end() - count, stack->end());
  const variable_list inputs = differentiable(op, arguments);
  refuse_transforms(inputs);
  if (!traced(inputs)) return call_function(op, inputs.back(), *stack);
  const WithoutCudaAutocast without_autocast;
  stack->resize(stack->size() - arguments.size());
  for (at::Tensor& result : Opaque::apply(at::TensorList(inputs), std::move(arguments), op))
    stack->emplace_back(std::move(result));
}

void call_backward(const OperatorHandle& backward, Stack* stack) {
  const WithoutCudaAutocast without_autocast;
  const BackwardCall call(backward, *stack);
  const variable_list inputs = differentiable(call.op, call.arguments);
  const variable_list found = gradients_of_results(
      [&](const variable_list& leaves) {
        Stack arguments = with_differentiable(call.op, call.arguments, leaves);
        call_function(call.op, leaves.back(), arguments);
        return take_tensors(arguments);
      },
      inputs, call.d_results);
  std::vector<at::Tensor> grads;
  for (size_t n = 0; n < inputs.size(); ++n)
    grads.push_back(found[n].defined() ? found[n].contiguous()
                                       : at::zeros_like(inputs[n], at::MemoryFormat::Contiguous));
  stack->emplace_back(std::move(grads));
}

void backward_shapes(const OperatorHandle& backward, Stack* stack) {
  const BackwardCall call(backward, *stack);
  std::vector<at::Tensor> grads;
  for (const at::Tensor& x : differentiable(call.op, call.arguments))
    grads.push_back(at::empty_symint(x.sym_sizes(), x.options()));
  stack->emplace_back(std::move(grads));
}

}  // namespace sextant
