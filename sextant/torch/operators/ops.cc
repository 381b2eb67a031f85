// The library `sextant` of libtorch operators: attend and attend_backward, for tensors in memory
// (CPU) and for tensors that have a shape only (Meta). Their derivatives are in autograd.cc.
//
// The kernels are boxed, they read their arguments off a stack: the arguments are then listed once,
// in arguments.h, and not in six signatures.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <string>
#include <type_traits>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/torch/operators/backend_choice.h"
#include "sextant/torch/operators/executor.h"
#include "sextant/torch/operators/flat_operands.h"
#include "sextant/torch/operators/operator_tags.h"
#include "sextant/torch/operators/score_of_tensors.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

using torch::jit::Stack;

// Laid out in memory as q is, so that the heads of [batch, queries, heads, columns], seen as
// [batch, heads, queries, columns], can be merged again without a copy.
at::Tensor new_out(const at::Tensor& q, const at::Tensor& v) {
  const c10::SymInt batch = q.sym_size(0), heads = q.sym_size(1), queries = q.sym_size(2);
  const c10::SymInt columns = v.sym_size(3);
  if (q.sym_strides()[1] < q.sym_strides()[2])
    return at::empty_symint({batch, queries, heads, columns}, q.options()).transpose(1, 2);
  return at::empty_symint({batch, heads, queries, columns}, q.options());
}

at::Tensor new_lse(const at::Tensor& q) {
  return at::empty_symint({q.sym_size(0), q.sym_size(1), q.sym_size(2)},
                          q.options().dtype(wide_type(q)));
}

template <class T>
void run_attend(const FlatOperands& arguments, const at::Tensor& out, const at::Tensor& lse) {
  const ScoreOfTensors<T> bound(arguments);
  attend(bound.score(), {any_view_4d<T>(out), view_rows<T>(lse)}, forward_backend(arguments.q),
         torch_executor());
}

void attend_cpu(const c10::OperatorHandle&, Stack* stack) {
  const FlatOperands a = pop_arguments(*stack);
  check_arguments(a);
  const at::Tensor out = new_out(a.q, a.v), lse = new_lse(a.q);
  wide_type(a.q) == at::kFloat ? run_attend<float>(a, out, lse) : run_attend<double>(a, out, lse);
  torch::jit::push(*stack, out, lse);
}

void attend_meta(const c10::OperatorHandle&, Stack* stack) {
  const FlatOperands a = pop_arguments(*stack);
  check_arguments(a);
  torch::jit::push(*stack, new_out(a.q, a.v), new_lse(a.q));
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

  // A gradient that is not wanted is a tensor without elements: tracers like it better than none.
  Gradients new_gradients() {
    Gradients grads;
    for (size_t n = 0; n < grads.size(); ++n)
      grads[n] = wanted[n] ? at::empty_like(*operands.differentiable()[n])
                           : at::empty({0}, operands.q.options());
    return grads;
  }
};

template <class T>
void run_backward(const BackwardArguments& a, const Gradients& grads) {
  const ScoreOfTensors<T> bound(a.operands);
  const auto& [q, k, v, q_imag, weight, bias, on_query, on_key, on_value, sink, query_bias,
               key_bias] = grads;
  const auto& w = a.wanted;
  const ScoreGrad<T> to = {
      .q = w[0] ? view_4d<T>(q) : View<T>{},
      .k = w[1] ? view_4d<T>(k) : View<T>{},
      .v = w[2] ? view_4d<T>(v) : View<T>{},
      .q_imag = w[3] ? view_4d<T>(q_imag) : View<T>{},
      .weight = w[4] ? view_numbers<T>(weight) : View<T>{},
      .bias = w[5] ? view_numbers<T>(bias) : View<T>{},
      .on_query = w[6] ? view_vectors<T>(on_query) : View<T>{},
      .on_key = w[7] ? view_vectors<T>(on_key) : View<T>{},
      .on_value = w[8] ? view_vectors<T>(on_value) : View<T>{},
      .query_bias = w[kQueryBias] ? view_4d<T>(query_bias) : View<T>{},
      .key_bias = w[kKeyBias] ? view_rows<T>(key_bias) : View<T>{},
      .sink = {sink.data_ptr<T>(), static_cast<size_t>(sink.numel())},
  };
  attend_backward(bound.score(), {any_view_4d<const T>(a.out), view_rows<const T>(a.lse)},
                  any_view_4d<const T>(a.d_out), to, backward_backend(a.operands.q),
                  torch_executor());
}

// Memory for gradients that the core gives by batch entry and head, whatever the operand shares.
void unshare(const BackwardArguments& a, Gradients& grads) {
  const at::Tensor& q = a.operands.q;
  const auto options = q.options().dtype(wide_type(q));
  if (a.wanted[kQueryBias])
    grads[kQueryBias] =
        at::empty({q.size(0), q.size(1), q.size(2), grads[kQueryBias].size(3)}, options);
  if (a.wanted[kKeyBias])
    grads[kKeyBias] = at::empty({q.size(0), q.size(1), grads[kKeyBias].size(2)}, options);
}

// Gradients are added up in float32 or better, and rounded once to the type of their operand.
void attend_backward_cpu(const c10::OperatorHandle&, Stack* stack) {
  BackwardArguments a(*stack);
  const Gradients grads = a.new_gradients();
  Gradients wide = grads;
  for (at::Tensor& grad : wide)
    if (is_narrow(grad)) grad = at::empty_like(grad, grad.options().dtype(at::kFloat));
  unshare(a, wide);
  wide_type(a.operands.q) == at::kFloat ? run_backward<float>(a, wide)
                                        : run_backward<double>(a, wide);
  for (size_t n = 0; n < grads.size(); ++n)
    stack->emplace_back(wide[n].sum_to_size(grads[n].sizes()).to(grads[n].scalar_type()));
}

void attend_backward_meta(const c10::OperatorHandle&, Stack* stack) {
  for (const at::Tensor& grad : BackwardArguments(*stack).new_gradients())
    stack->emplace_back(grad);
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

TORCH_LIBRARY_IMPL(sextant, CPU, library) {
  library.impl("attend", torch::CppFunction::makeFromBoxedFunction<&attend_cpu>());
  library.impl("attend_backward",
               torch::CppFunction::makeFromBoxedFunction<&attend_backward_cpu>());
}

TORCH_LIBRARY_IMPL(sextant, Meta, library) {
  library.impl("attend", torch::CppFunction::makeFromBoxedFunction<&attend_meta>());
  library.impl("attend_backward",
               torch::CppFunction::makeFromBoxedFunction<&attend_backward_meta>());
}

}  // namespace sextant
