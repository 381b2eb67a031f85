// Methods as operators for Python: torch.ops.sextant.method_attend, method_attend_with_lse and
// method_embed have as arguments a method's name, sizes, options (JSON) and parameters.
//
// In eager mode they run the method's tensor code, which autograd records. A tracer (torch.compile)
// passes tensors without memory, from which index tensors cannot be computed. It records one opaque
// operator instead, whose backward operator runs the method again.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/bindings/call_arguments.h"
#include "sextant/torch/bindings/check_call.h"
#include "sextant/torch/bindings/method_cache.h"
#include "sextant/torch/bindings/without_autocast.h"
#include "sextant/torch/method.h"
#include "sextant/torch/operators/checkpointed.h"
#include "sextant/torch/operators/operator_tags.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::jit::Stack;

constexpr const char* kMethod = "str method, int[] shape, str options, Tensor[] parameters, ";
constexpr const char* kEmbed =
    "Tensor x, *, SymInt first_query=0, bool causal=True, int[] packed_queries=[], "
    "bool last=False, "
    "Tensor? token_ids=None, Tensor? input_before=None";
constexpr const char* kAttend =
    "Tensor q, Tensor k, Tensor v, *, int layer=0, SymInt first_query=0, SymInt first_key=0, "
    "bool causal=True, int[] packed_queries=[], int[] packed_keys=[], Tensor? mask=None, "
    "Tensor? query_segments=None, Tensor? key_segments=None, "
    "Tensor? query_rotary_positions=None, Tensor? key_rotary_positions=None, "
    "Tensor? cumulative_queries=None, Tensor? cumulative_keys=None, float? scale=None, "
    "Tensor? sink=None, Tensor? key_bias=None, int[] window=[], float softcap=0, "
    "float dropout_p=0, Tensor? dropout_seed=None";
// Places of these arguments in a stack.
constexpr size_t kCumulativeQueries = 18, kCumulativeKeys = 19, kScale = 20, kSink = 21,
                 kKeyBiasAt = 22, kWindow = 23, kSoftcap = 24, kDropout = 25, kSeed = 26;

CachedMethod method_of(const Stack& arguments) {
  return cached_method(arguments[0].toStringRef(), arguments[1].toIntVector(),
                       arguments[2].toStringRef());
}

NamedMethod named_method(const Stack& arguments) {
  return {arguments[0].toStringRef(), arguments[1].toIntVector()};
}

at::Tensor optional_tensor(const at::IValue& value) {
  return value.isNone() ? at::Tensor() : value.toTensor();
}

// A recurrence over the input begins at position 0, so rows that begin later continue one.
void begin_at_zero(Layout& layout) {
  if (layout.first_query < 0)
    fail("method_embed: first_query: expected at least 0, but got " +
         std::to_string(layout.first_query));
  if (layout.first_query == 0 && layout.input_before.defined())
    fail("method_embed: input_before: expected none, as first_query is 0");
  layout.first_key = 0;
  layout.keys = layout.first_query + layout.queries;
}

CallTerms terms_of(const Stack& a) {
  CallTerms terms = {.sink = optional_tensor(a[kSink]),
                     .key_bias = optional_tensor(a[kKeyBiasAt]),
                     .window = window_of(a[kWindow].toIntVector()),
                     .softcap = a[kSoftcap].toDouble(),
                     .dropout = {.p = a[kDropout].toDouble(), .seed = optional_tensor(a[kSeed])}};
  if (!a[kScale].isNone()) terms.scale = a[kScale].toDouble();
  return terms;
}

// Embed, Attend and AttendWithLse define the operators: the differentiable inputs besides the
// parameters (kInputs from place 4 on, and optional ones), the results, and the computation. `a`
// are the arguments in the order of the schema.
struct Embed {
  static constexpr size_t kInputs = 1, kResults = 1;
  static constexpr std::array<size_t, 0> kOptional = {};
  static constexpr const char* kBackward = "sextant::method_embed_backward";
  static variable_list run(const Stack& a) {
    const at::Tensor& x = a[4].toTensor();
    check_input(named_method(a), x);
    check_same_device("x", x, {}, a[3].toTensorVector());
    Layout layout = {.batch = x.size(0),
                     .queries = x.size(1),
                     .keys = x.size(1),
                     .first_query = a[5].toInt(),
                     .first_key = a[5].toInt(),
                     .causal = a[6].toBool(),
                     .packed_queries = a[7].toIntVector(),
                     .packed_keys = a[7].toIntVector(),
                     .token_ids = optional_tensor(a[9]),
                     .input_before = optional_tensor(a[10])};
    const auto method = method_of(a);
    if (a[8].toBool() && layout.input_before.defined())
      fail("method_embed: input_before: expected none with last=True, which continues nothing");
    if (method->recurs_over_input())
      begin_at_zero(layout);
    else if (layout.input_before.defined())
      fail("method_embed: input_before: expected none, as the method does not continue from it");
    if (layout.token_ids.defined() && !method->reads_token_ids())
      fail("method_embed: token_ids: expected none, as the method does not go by them");
    const std::vector<at::Tensor> parameters = all_to_float(a[3].toTensorVector());
    const at::Tensor wide = to_float(x);
    const at::Tensor embedded = a[8].toBool() ? method->embed_last(wide, layout, parameters)
                                              : method->embed(wide, layout, parameters);
    return {embedded.is_same(wide) ? x : embedded.to(x.scalar_type())};
  }
  static variable_list meta(const Stack& a) {
    return {at::empty_symint(a[4].toTensor().sym_sizes(), a[4].toTensor().options())};
  }
};

struct Attend {
  static constexpr size_t kInputs = 3, kResults = 1;
  static constexpr std::array<size_t, 2> kOptional = {kSink, kKeyBiasAt};
  static constexpr const char* kBackward = "sextant::method_attend_backward";
  static variable_list run(const Stack& a) { return {std::get<0>(attend(a, attend_without_lse))}; }
  static variable_list meta(const Stack& a) {
    const at::Tensor &q = a[4].toTensor(), &v = a[6].toTensor();
    return {at::empty_symint({q.sym_size(0), q.sym_size(1), q.sym_size(2), v.sym_size(3)},
                             q.options())};
  }

 protected:
  using Results = std::tuple<at::Tensor, at::Tensor>;
  static Results attend(const Stack& a, decltype(attend_with_lse) attend_method) {
    const at::Tensor &q = a[4].toTensor(), &k = a[5].toTensor(), &v = a[6].toTensor();
    const CachedMethod method = method_of(a);
    check_call(named_method(a), *method, q, k, v, a[7].toInt());
    check_same_device("q", q, {{"k", k}, {"v", v}}, a[3].toTensorVector());
    Layout layout = {.batch = q.size(0),
                     .queries = q.size(2),
                     .keys = k.size(2),
                     .first_query = a[8].toInt(),
                     .first_key = a[9].toInt(),
                     .causal = a[10].toBool(),
                     .packed_queries = cumulative("packed_queries", a[11].toIntVector(),
                                                  optional_tensor(a[kCumulativeQueries])),
                     .packed_keys = cumulative("packed_keys", a[12].toIntVector(),
                                               optional_tensor(a[kCumulativeKeys])),
                     .query_rotary_positions = optional_tensor(a[16]),
                     .key_rotary_positions = optional_tensor(a[17]),
                     .query_segments = optional_tensor(a[14]),
                     .key_segments = optional_tensor(a[15]),
                     .plans = method.plans};
    CallTerms terms = terms_of(a);
    if (!a[13].isNone()) read_mask(a[13].toTensor(), q, layout, terms);
    return attend_method(*method, q, k, v, layout, a[7].toInt(), a[3].toTensorVector(), terms);
  }

 private:
  static Results attend_without_lse(const Method& method, const at::Tensor& q, const at::Tensor& k,
                                    const at::Tensor& v, const Layout& layout, int64_t layer,
                                    Parameters parameters, const CallTerms& terms) {
    return {attend_with(method, q, k, v, layout, layer, parameters, terms), at::Tensor()};
  }
};

struct AttendWithLse : Attend {
  static constexpr size_t kResults = 2;
  static constexpr const char* kBackward = "sextant::method_attend_with_lse_backward";
  static variable_list run(const Stack& a) {
    auto [out, lse] = attend(a, attend_with_lse);
    return {std::move(out), std::move(lse)};
  }
  static variable_list meta(const Stack& a) {
    variable_list results = Attend::meta(a);
    const at::Tensor& q = a[4].toTensor();
    results.push_back(at::empty_symint({q.sym_size(0), q.sym_size(1), q.sym_size(2)},
                                       q.options().dtype(wide_type(q))));
    return results;
  }
};

// The differentiable arguments: inputs, optional inputs that are there, then parameters.
template <class Call>
variable_list differentiable(const Stack& arguments) {
  variable_list tensors;
  for (size_t n = 0; n < Call::kInputs; ++n) tensors.push_back(arguments[4 + n].toTensor());
  for (const size_t at : Call::kOptional)
    if (!arguments[at].isNone()) tensors.push_back(arguments[at].toTensor());
  for (const at::Tensor& parameter : arguments[3].toTensorVector()) tensors.push_back(parameter);
  return tensors;
}

template <class Call>
void replace_differentiable(Stack& arguments, const variable_list& tensors) {
  auto next = tensors.begin();
  for (size_t n = 0; n < Call::kInputs; ++n) arguments[4 + n] = *next++;
  for (const size_t at : Call::kOptional)
    if (!arguments[at].isNone()) arguments[at] = *next++;
  arguments[3] = std::vector<at::Tensor>(next, tensors.end());
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

template <class Call>
class Opaque : public torch::autograd::Function<Opaque<Call>> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList inputs, Stack arguments,
                               const c10::OperatorHandle& op) {
    context->save_for_backward(inputs.vec());
    Stack stack = arguments;
    {
      const at::AutoDispatchBelowADInplaceOrView guard;
      op.callBoxed(stack);
    }
    replace_differentiable<Call>(arguments, variable_list(inputs.size()));
    context->saved_data["arguments"] = c10::ivalue::Tuple::create(std::move(arguments));
    variable_list results;
    for (at::IValue& result : stack) results.push_back(std::move(result).toTensor());
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_results) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(Call::kBackward, "");
    Stack arguments = context->saved_data.at("arguments").toTupleRef().elements().vec();
    replace_differentiable<Call>(arguments, context->get_saved_variables());
    arguments.insert(arguments.begin(), d_results.begin(), d_results.end());
    op.callBoxed(arguments);
    variable_list grads = arguments[0].toTensorVector();
    grads.resize(grads.size() + 2);  // `arguments` and `op` have no gradients
    return grads;
  }
};

Stack take(Stack& stack, const c10::OperatorHandle& op) {
  return torch::jit::pop(stack, op.schema().arguments().size());
}

// The result is contiguous, so that a tracer knows its strides without running the method.
template <class Call>
void call_kernel(const c10::OperatorHandle& op, Stack* stack) {
  const WithoutCudaAutocast without_autocast;
  const Stack arguments = take(*stack, op);
  for (const at::Tensor& result : Call::run(arguments)) stack->emplace_back(result.contiguous());
}

template <class Call>
void call_meta(const c10::OperatorHandle& op, Stack* stack) {
  const Stack arguments = take(*stack, op);
  for (at::Tensor& result : Call::meta(arguments)) stack->emplace_back(std::move(result));
}

template <class Call>
void call_autograd(const c10::OperatorHandle& op, Stack* stack) {
  const WithoutCudaAutocast without_autocast;
  Stack arguments = take(*stack, op);
  const variable_list inputs = differentiable<Call>(arguments);
  refuse_transforms(inputs);
  if (!traced(inputs)) {
    for (const at::Tensor& result : Call::run(arguments)) stack->emplace_back(result.contiguous());
    return;
  }
  for (at::Tensor& result : Opaque<Call>::apply(at::TensorList(inputs), std::move(arguments), op))
    stack->emplace_back(std::move(result));
}

// Runs the method again and computes gradients.
template <class Call>
void backward_kernel(const c10::OperatorHandle& op, Stack* stack) {
  const WithoutCudaAutocast without_autocast;
  Stack arguments = take(*stack, op);
  variable_list d_results;
  for (size_t n = 0; n < Call::kResults; ++n) d_results.push_back(arguments[n].toTensor());
  arguments.erase(arguments.begin(), arguments.begin() + Call::kResults);
  const variable_list inputs = differentiable<Call>(arguments);
  const variable_list found = gradients_of_results(
      [&](const variable_list& leaves) {
        replace_differentiable<Call>(arguments, leaves);
        return Call::run(arguments);
      },
      inputs, d_results);
  std::vector<at::Tensor> grads;
  for (size_t n = 0; n < inputs.size(); ++n)
    grads.push_back(found[n].defined() ? found[n].contiguous()
                                       : at::zeros_like(inputs[n], at::MemoryFormat::Contiguous));
  stack->emplace_back(std::move(grads));
}

template <class Call>
void backward_meta(const c10::OperatorHandle& op, Stack* stack) {
  Stack arguments = take(*stack, op);
  arguments.erase(arguments.begin(), arguments.begin() + Call::kResults);
  std::vector<at::Tensor> grads;
  for (const at::Tensor& x : differentiable<Call>(arguments))
    grads.push_back(at::empty_symint(x.sym_sizes(), x.options()));
  stack->emplace_back(std::move(grads));
}

// A method's further columns of k (Method::key_columns()), with no columns if it has none. They are
// computed by tensor functions that a tracer records.
at::Tensor key_columns(const std::string& name, at::IntArrayRef shape, const std::string& options,
                       const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                       int64_t layer) {
  check_input({name, shape.vec()}, x);
  check_same_device("x", x, {}, parameters);
  const WithoutCudaAutocast without_autocast;
  const at::Tensor columns = cached_method(name, shape.vec(), options)
                                 ->key_columns(to_float(x), layer, all_to_float(parameters));
  if (columns.defined()) return columns.to(x.scalar_type());
  return at::empty_symint({x.sym_size(0), shape[2], x.sym_size(1), 0}, x.options());
}

template <auto function>
torch::CppFunction boxed() {
  return torch::CppFunction::makeFromBoxedFunction<function>();
}

void add_kernels(torch::Library& library) {
  library.impl("method_embed", boxed<&call_kernel<Embed>>());
  library.impl("method_embed_backward", boxed<&backward_kernel<Embed>>());
  library.impl("method_attend", boxed<&call_kernel<Attend>>());
  library.impl("method_attend_backward", boxed<&backward_kernel<Attend>>());
  library.impl("method_attend_with_lse", boxed<&call_kernel<AttendWithLse>>());
  library.impl("method_attend_with_lse_backward", boxed<&backward_kernel<AttendWithLse>>());
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sextant, library) {
  library.def(
      "method_key_columns(str method, int[] shape, str options, Tensor[] parameters, Tensor x, *, "
      "int layer=0) -> Tensor",
      key_columns);
  const std::vector<at::Tag> tags = operator_tags();
  const auto define = [&](const std::string& name, const std::string& d_out, const char* rest,
                          const char* result) {
    const std::string schema = name + "(" + d_out + kMethod + rest + ") -> " + result;
    library.def(schema.c_str(), tags);
  };
  define("method_embed", "", kEmbed, "Tensor");
  define("method_embed_backward", "Tensor d_out, ", kEmbed, "Tensor[]");
  define("method_attend", "", kAttend, "Tensor");
  define("method_attend_backward", "Tensor d_out, ", kAttend, "Tensor[]");
  define("method_attend_with_lse", "", kAttend, "(Tensor out, Tensor lse)");
  define("method_attend_with_lse_backward", "Tensor d_out, Tensor d_lse, ", kAttend, "Tensor[]");
}

TORCH_LIBRARY_IMPL(sextant, CPU, library) { add_kernels(library); }
TORCH_LIBRARY_IMPL(sextant, CUDA, library) { add_kernels(library); }

TORCH_LIBRARY_IMPL(sextant, Meta, library) {
  library.impl("method_embed", boxed<&call_meta<Embed>>());
  library.impl("method_embed_backward", boxed<&backward_meta<Embed>>());
  library.impl("method_attend", boxed<&call_meta<Attend>>());
  library.impl("method_attend_backward", boxed<&backward_meta<Attend>>());
  library.impl("method_attend_with_lse", boxed<&call_meta<AttendWithLse>>());
  library.impl("method_attend_with_lse_backward", boxed<&backward_meta<AttendWithLse>>());
}

TORCH_LIBRARY_IMPL(sextant, Autograd, library) {
  library.impl("method_embed", boxed<&call_autograd<Embed>>());
  library.impl("method_attend", boxed<&call_autograd<Attend>>());
  library.impl("method_attend_with_lse", boxed<&call_autograd<AttendWithLse>>());
}

}  // namespace sextant
