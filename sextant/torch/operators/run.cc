// Both passes: views of tensors, a plan that is prepared for the backend, and results in the types
// of their operands.
#include "sextant/torch/operators/run.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cstddef>
#include <string>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"
#include "sextant/torch/operators/device_call.h"
#include "sextant/torch/operators/views.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

// A result with the memory layout of q: if q is a transposed view of [batch, queries, heads,
// columns], so is the result, and its heads can be merged without a copy.
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

// The context of one call. It uses this thread's workspace, whose memory later calls reuse; blocks
// of more than 2^22 floats (16 MiB), which only long sequences need, are freed when the call ends.
class CallContext {
 public:
  explicit CallContext(const DeviceCall& call) : context_(torch_executor()) {
    context_.workspace = &memory();
    context_.stream = call.stream();
  }
  ~CallContext() { memory().trim(int64_t{1} << 22); }
  CallContext(const CallContext&) = delete;
  operator const Context&() const { return context_; }  // NOLINT(google-explicit-constructor)

 private:
  static Workspace& memory() {
    thread_local Workspace memory;
    return memory;
  }

  Context context_;
};

// The backend of the forward pass. The gradient of a key bias sums score gradients, whose sum over
// the keys of a query is zero only if both passes round alike. The backward pass is float32, so a
// call that trains a key bias is float32 in the forward pass too.
const Backend& backend_of(const TensorData& data) {
  const Backend& backend = forward_backend(data.q);
  const bool trains_key_bias = data.key_bias.defined() && data.key_bias.requires_grad();
  return trains_key_bias && backend.products != DType::kFloat32 ? cpu_backend() : backend;
}

// The seed is a number of the call, so each replay would drop the same weights.
void check_dropout(const TensorData& data, const DeviceCall& call) {
  if (data.dropout.p > 0 && call.is_captured())
    fail("attend: dropout_p: expected 0 while a CUDA graph is captured, but got " +
         std::to_string(data.dropout.p));
}

template <class T>
void attend_to(const TensorData& data, const TensorPlan& plan, bool trains, const at::Tensor& out,
               const at::Tensor& lse) {
  const DeviceCall call(data.q);
  check_dropout(data, call);
  const OperandViews<T> views(data);
  const auto prepared = plan.prepared(views.operands(), backend_of(data),
                                      trains ? Passes::kBoth : Passes::kForward, call);
  attend<T>(views.operands(), *prepared, {any_view_4d<T>(out), view_rows<T>(lse)},
            CallContext(call));
}

template <class T>
void attend_backward_to(const at::Tensor& d_out, const at::Tensor& out, const at::Tensor& lse,
                        const Wanted& w, const TensorData& data, const TensorPlan& plan,
                        const Gradients& grads) {
  const DeviceCall call(data.q);
  const OperandViews<T> views(data);
  ScoreGrad<T> to;
  size_t n = 0;
  each_differentiable([&](auto operand) {
    const at::Tensor& grad = grads[n];
    if (w[n++]) set_view(with_four_axes(operand, grad), operand.of(to));
  });
  const auto prepared =
      plan.prepared(views.operands(), backward_backend(data.q), Passes::kBoth, call);
  attend_backward<T>(views.operands(), *prepared,
                     {any_view_4d<const T>(out), view_rows<const T>(lse)},
                     any_view_4d<const T>(d_out), to, CallContext(call));
}

// The gradients as the core writes them: of biases by query or key for each batch entry and head,
// even if the operand is shared, and of operands that are converted in the type of the computation.
Gradients computed_gradients(const TensorData& data, const Wanted& wanted, const Gradients& grads) {
  const at::Tensor& q = data.q;
  const auto options = q.options().dtype(wide_type(q));
  Gradients computed = grads;
  size_t n = 0;
  each_differentiable([&](auto operand) {
    at::Tensor& x = computed[n];
    const bool is_wanted = wanted[n++];
    if constexpr (operand.elements == Elements::kAsStored) return;
    if (is_wanted && operand.may_share(Axis::kBatch)) {
      std::vector<int64_t> sizes = x.sizes().vec();
      sizes[0] = q.size(0), sizes[1] = q.size(1);
      x = at::empty(sizes, options);
    } else if (is_narrow(x)) {
      x = at::empty_like(x, x.options().dtype(at::kFloat));
    }
  });
  return computed;
}

thread_local const Backend* overriding = nullptr;

at::Float32MatmulPrecision precision() {
  try {
    return at::globalContext().float32MatmulPrecision();
  } catch (const c10::Error&) {
    // Newer versions of libtorch throw if the settings of CUDA or oneDNN differ from it. Products
    // are then exact.
    return at::Float32MatmulPrecision::HIGHEST;
  }
}

// With fewer queries, vector code takes the same time or less.
bool pays_by_amx(const at::Tensor& q) {
  constexpr int64_t kFewest = 1024;
  return multiplies_by_amx() && q.size(2) >= kFewest;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> new_results(const TensorData& data) {
  return {new_out(data.q, data.v), new_lse(data.q)};
}

Gradients new_gradients(const TensorData& data, const Wanted& wanted) {
  TensorData d = data;
  const auto operands = differentiable(d);
  Gradients grads;
  for (size_t n = 0; n < grads.size(); ++n)
    grads[n] = wanted[n] ? at::empty_like(*operands[n]) : at::empty({0}, data.q.options());
  return grads;
}

std::tuple<at::Tensor, at::Tensor> run_attend(const TensorData& data, const TensorPlan& plan,
                                              bool trains) {
  const auto [out, lse] = new_results(data);
  wide_type(data.q) == at::kFloat ? attend_to<float>(data, plan, trains, out, lse)
                                  : attend_to<double>(data, plan, trains, out, lse);
  return {out, lse};
}

Gradients run_attend_backward(const at::Tensor& d_out, const at::Tensor& out, const at::Tensor& lse,
                              Wanted wanted, const TensorData& data, const TensorPlan& plan) {
  TensorData d = data;
  const auto operands = differentiable(d);
  for (size_t n = 0; n < wanted.size(); ++n) wanted[n] = wanted[n] && operands[n]->defined();
  const Gradients grads = new_gradients(data, wanted);
  const Gradients wide = computed_gradients(data, wanted, grads);
  wide_type(data.q) == at::kFloat
      ? attend_backward_to<float>(d_out, out, lse, wanted, data, plan, wide)
      : attend_backward_to<double>(d_out, out, lse, wanted, data, plan, wide);
  Gradients result;
  for (size_t n = 0; n < grads.size(); ++n)
    result[n] = wide[n].sum_to_size(grads[n].sizes()).to(grads[n].scalar_type());
  return result;
}

// float64 is for gradient checks, which need exactness and not speed. The reference computes it.
const Backend& forward_backend(const at::Tensor& q) {
  if (q.is_cuda())
    return overriding && overriding->device == Device::kCuda ? *overriding : cuda_backend();
  if (wide_type(q) != at::kFloat) return reference_backend();
  if (overriding) return *overriding;
  const at::Float32MatmulPrecision allowed = precision();
  if (allowed == at::Float32MatmulPrecision::MEDIUM && multiplies_bfloat16())
    return cpu_bfloat16_backend();
  return allowed != at::Float32MatmulPrecision::HIGHEST && pays_by_amx(q) ? cpu_bf16x3_backend()
                                                                          : cpu_backend();
}

// The backward pass uses AMX at every precision: its gradients are as exact as those of vector
// code, and decoding, which must have the bits of prefill, has no gradients.
const Backend& backward_backend(const at::Tensor& q) {
  const bool by_amx = q.is_cpu() && wide_type(q) == at::kFloat && !overriding && pays_by_amx(q);
  return by_amx ? cpu_bf16x3_backend() : forward_backend(q);
}

BackendOverride::BackendOverride(const Backend& backend) : before_(overriding) {
  overriding = &backend;
}
BackendOverride::~BackendOverride() { overriding = before_; }

}  // namespace sextant
