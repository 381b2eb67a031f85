// Methods as operators for Python: torch.ops.sextant.method_attend, method_attend_with_lse and
// method_embed have as arguments a method's name, sizes, options (JSON) and parameters.
//
// Each is a function with named arguments, which the dispatcher calls with tensors in memory.
// Autograd records the tensor functions that it calls. A tracer (torch.compile) passes tensors
// without memory, from which index tensors cannot be computed; opaque_call.h is for it.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/util/Optional.h>
#include <torch/library.h>

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/bindings/call_arguments.h"
#include "sextant/torch/bindings/check_call.h"
#include "sextant/torch/bindings/method_cache.h"
#include "sextant/torch/bindings/opaque_call.h"
#include "sextant/torch/method.h"
#include "sextant/torch/operators/operator_tags.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

using c10::OperatorHandle;
using torch::jit::Stack;

using OptionalTensor = c10::optional<at::Tensor>;
using Tensors = std::vector<at::Tensor>;

constexpr const char* kMethod = "str method, SymInt[] shape, str options, Tensor[] parameters, ";

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

constexpr const char* kEmbed =
    "Tensor x, *, SymInt first_query=0, bool causal=True, int[] packed_queries=[], bool "
    "last=False, Tensor? token_ids=None, Tensor? input_before=None";

at::Tensor method_embed(const std::string& name, at::IntArrayRef shape, const std::string& options,
                        const Tensors& parameters, const at::Tensor& x, int64_t first_query,
                        bool causal, at::IntArrayRef packed_queries, bool last,
                        const OptionalTensor& token_ids, const OptionalTensor& input_before) {
  const WithoutCudaAutocast without_autocast;
  check_input({name, shape.vec()}, x);
  check_same_device("x", x, {}, parameters);
  Layout layout = {.batch = x.size(0),
                   .queries = x.size(1),
                   .keys = x.size(1),
                   .first_query = first_query,
                   .first_key = first_query,
                   .causal = causal,
                   .packed_queries = packed_queries.vec(),
                   .packed_keys = packed_queries.vec(),
                   .token_ids = token_ids.value_or(at::Tensor()),
                   .input_before = input_before.value_or(at::Tensor())};
  const CachedMethod method = cached_method(name, shape.vec(), options);
  if (last && input_before)
    fail("method_embed: input_before: expected none with last=True, which continues nothing");
  if (method->recurs_over_input())
    begin_at_zero(layout);
  else if (input_before)
    fail("method_embed: input_before: expected none, as the method does not continue from it");
  if (token_ids && !method->reads_token_ids())
    fail("method_embed: token_ids: expected none, as the method does not go by them");
  const Tensors wide_parameters = all_to_float(parameters);
  const at::Tensor wide = to_float(x);
  const at::Tensor embedded = last ? method->embed_last(wide, layout, wide_parameters)
                                   : method->embed(wide, layout, wide_parameters);
  return (embedded.is_same(wide) ? x : embedded.to(x.scalar_type())).contiguous();
}

// frames, int64 [frames, 7] with the fields of sextant::Frame, are sequences at any rows of q and k
// instead of first_query to packed_keys. pages, key_rows and int8_pages are those of the operator
// attend (operators/flat_operands.h).
constexpr const char* kAttend =
    "Tensor q, Tensor k, Tensor v, *, int layer=0, SymInt first_query=0, SymInt first_key=0, bool "
    "causal=True, int[] packed_queries=[], int[] packed_keys=[], Tensor? mask=None, Tensor? "
    "query_segments=None, Tensor? key_segments=None, Tensor? query_rotary_positions=None, Tensor? "
    "key_rotary_positions=None, Tensor? cumulative_queries=None, Tensor? cumulative_keys=None, "
    "float? scale=None, Tensor? sink=None, Tensor? key_bias=None, int[] window=[], float "
    "softcap=0, float dropout_p=0, Tensor? dropout_seed=None, Tensor? frames=None, Tensor? "
    "pages=None, int key_rows=0, Tensor[]? int8_pages=None";

// The result is contiguous, so that a tracer knows its strides without running the method.
template <bool kWithLse>
auto method_attend(const std::string& name, at::IntArrayRef shape, const std::string& options,
                   const Tensors& parameters, const at::Tensor& q, const at::Tensor& k,
                   const at::Tensor& v, int64_t layer, int64_t first_query, int64_t first_key,
                   bool causal, at::IntArrayRef packed_queries, at::IntArrayRef packed_keys,
                   const OptionalTensor& mask, const OptionalTensor& query_segments,
                   const OptionalTensor& key_segments, const OptionalTensor& query_rotary_positions,
                   const OptionalTensor& key_rotary_positions,
                   const OptionalTensor& cumulative_queries, const OptionalTensor& cumulative_keys,
                   c10::optional<double> scale, const OptionalTensor& sink,
                   const OptionalTensor& key_bias, at::IntArrayRef window, double softcap,
                   double dropout_p, const OptionalTensor& dropout_seed,
                   const OptionalTensor& frames, const OptionalTensor& pages, int64_t key_rows,
                   const c10::optional<Tensors>& int8_pages) {
  const WithoutCudaAutocast without_autocast;
  const auto given = [](const OptionalTensor& x) { return x.value_or(at::Tensor()); };
  const bool is_own = name == kOwnMethod;  // its parameters are operands, checked by their caller
  const CachedMethod method =
      is_own ? own_method(options, parameters) : cached_method(name, shape.vec(), options);
  const Tensors trained = is_own ? Tensors() : parameters;
  if (!pages) check_call({name, shape.vec()}, *method, q, k, v, layer);
  check_same_device("q", q, {{"k", k}, {"v", v}}, trained);
  Layout layout = {
      .batch = q.size(0),
      .queries = q.size(2),
      .keys = pages ? key_rows : k.size(2),
      .first_query = first_query,
      .first_key = first_key,
      .causal = causal,
      .packed_queries =
          cumulative("packed_queries", packed_queries.vec(), given(cumulative_queries)),
      .packed_keys = cumulative("packed_keys", packed_keys.vec(), given(cumulative_keys)),
      .cached = frames ? frames_of(*frames) : std::vector<Frame>(),
      .query_rotary_positions = given(query_rotary_positions),
      .key_rotary_positions = given(key_rotary_positions),
      .query_segments = given(query_segments),
      .key_segments = given(key_segments),
      .plans = method.plans};
  CallTerms terms = {.sink = given(sink),
                     .key_bias = given(key_bias),
                     .window = window_of(window.vec()),
                     .softcap = softcap,
                     .dropout = {.p = dropout_p, .seed = given(dropout_seed)}};
  if (scale) terms.scale = *scale;
  if (mask) read_mask(*mask, q, layout, terms);
  TensorOperands operands = plain_operands(q, k, v, layout);
  operands.pages = given(pages);
  operands.key_rows = key_rows;
  operands.int8_pages = int8_pages.value_or(Tensors());
  operands = applied(*method, std::move(operands), layout, layer, trained, terms);
  operands.whole_lse = kWithLse;
  const auto [out, lse] = attend(operands);
  at::Tensor result = out.to(q.scalar_type()).contiguous();
  if constexpr (kWithLse)
    return std::tuple(result, lse.contiguous());
  else
    return result;
}

// A method's further columns of k or q (Method::key_columns(), query_columns()), with no columns if
// it has none. They are computed by tensor functions that a tracer records.
template <at::Tensor (Method::*columns_of)(const at::Tensor&, int64_t, Parameters) const>
at::Tensor further_columns(const std::string& name, at::IntArrayRef shape,
                           const std::string& options, const Tensors& parameters,
                           const at::Tensor& x, int64_t layer) {
  check_input({name, shape.vec()}, x);
  check_same_device("x", x, {}, parameters);
  const WithoutCudaAutocast without_autocast;
  const auto method = cached_method(name, shape.vec(), options);
  const at::Tensor columns = ((*method).*columns_of)(to_float(x), layer, all_to_float(parameters));
  if (columns.defined()) return columns.to(x.scalar_type());
  const int64_t heads = shape[columns_of == &Method::key_columns ? 2 : 1];
  return at::empty_symint({x.sym_size(0), heads, x.sym_size(1), 0}, x.options());
}

const at::Tensor& tensor_named(const OperatorHandle& op, const Stack& arguments, const char* name) {
  return arguments.at(static_cast<size_t>(*op.schema().argumentIndexWithName(name))).toTensor();
}

void embed_meta(const OperatorHandle& op, Stack* stack) {
  const Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  const at::Tensor& x = tensor_named(op, arguments, "x");
  stack->emplace_back(at::empty_symint(x.sym_sizes(), x.options()));
}

void method_meta(const OperatorHandle& op, Stack* stack) {
  const Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  const at::Tensor &q = tensor_named(op, arguments, "q"), &v = tensor_named(op, arguments, "v");
  const std::array<c10::SymInt, 3> rows = {q.sym_size(0), q.sym_size(1), q.sym_size(2)};
  stack->emplace_back(at::empty_symint({rows[0], rows[1], rows[2], v.sym_size(3)}, q.options()));
  if (op.schema().returns().size() == 2)
    stack->emplace_back(at::empty_symint(rows, q.options().dtype(wide_type(q))));
}

template <auto function>
torch::CppFunction boxed() {
  return torch::CppFunction::makeFromBoxedFunction<function>();
}

void add_functions(torch::Library& library) {
  library.impl("method_embed", &method_embed);
  library.impl("method_attend", &method_attend<false>);
  library.impl("method_attend_with_lse", &method_attend<true>);
  for (const char* name :
       {"method_embed_backward", "method_attend_backward", "method_attend_with_lse_backward"})
    library.impl(name, boxed<&call_backward>());
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sextant, library) {
  const std::string of_input =
      "(str method, int[] shape, str options, Tensor[] parameters, Tensor x, *, int layer=0) -> "
      "Tensor";
  library.def(("method_key_columns" + of_input).c_str(), further_columns<&Method::key_columns>);
  library.def(("method_query_columns" + of_input).c_str(), further_columns<&Method::query_columns>);
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

TORCH_LIBRARY_IMPL(sextant, CPU, library) { add_functions(library); }
TORCH_LIBRARY_IMPL(sextant, CUDA, library) { add_functions(library); }

TORCH_LIBRARY_IMPL(sextant, Meta, library) {
  library.impl("method_embed", boxed<&embed_meta>());
  for (const char* name : {"method_attend", "method_attend_with_lse"})
    library.impl(name, boxed<&method_meta>());
  for (const char* name :
       {"method_embed_backward", "method_attend_backward", "method_attend_with_lse_backward"})
    library.impl(name, boxed<&backward_shapes>());
}

TORCH_LIBRARY_IMPL(sextant, Autograd, library) {
  for (const char* name : {"method_embed", "method_attend", "method_attend_with_lse"})
    library.impl(name, boxed<&call_differentiably>());
}

}  // namespace sextant
