// Differentiable tensors are inputs of one autograd function, and the rest of the call its
// constant. The gradient of lse flows through a column that is appended to values and results.
#include "sextant/torch/operators/autograd.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/operators/kept.h"
#include "sextant/torch/operators/run.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The call and its data without the differentiable tensors. Autograd saves the latter itself, and
// so detects changes of them in place.
struct CallAndRest {
  AttendCall call;
  TensorData rest;
};

// Appends a column to the values and the results, through which the gradient of lse flows. In
//
//   d score_ij = p_ij (d_out_i . v_j - d_out_i . out_i),    d lse_i / d score_ij = p_ij,
//
// a column that is 0 in every value, 1 in d_out_i and -d_lse_i in out_i adds p_ij d_lse_i.
void add_lse_column(const at::Tensor& d_lse, at::Tensor& d_out, at::Tensor& out, TensorData& data) {
  const auto padded = [](const at::Tensor& x, double with) {
    return x.defined() ? at::constant_pad_nd(x, {0, 1}, with) : x;
  };
  d_out = padded(d_out.defined() ? d_out : at::zeros_like(out), 1);
  out = at::cat({out, -d_lse.unsqueeze(-1)}, -1);
  each_tensor(data, [&](auto operand, at::Tensor& x) {
    if (operand.has(Axis::kValueColumns)) x = padded(x, 0);
  });
}

// `inputs` are the defined differentiable tensors: autograd identifies them by their index in this
// list, which may not have undefined tensors.
class Attend : public torch::autograd::Function<Attend> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList /*inputs*/, AttendCall call,
                               TensorData data) {
    auto [out, lse] = call.forward(data);
    variable_list saved;
    for (at::Tensor* x : differentiable(data)) saved.push_back(std::move(*x));
    saved.push_back(out);
    saved.push_back(lse);
    context->save_for_backward(std::move(saved));
    keep(context, CallAndRest{std::move(call), std::move(data)});
    context->set_materialize_grads(false);
    return {out, lse};
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const auto& own = kept<CallAndRest>(context);
    TensorData data = own.rest;
    const auto operands = differentiable(data);
    for (size_t n = 0; n < operands.size(); ++n) *operands[n] = saved[n];
    at::Tensor d_out = d_outputs[0], out = saved[kDifferentiable];
    const at::Tensor& d_lse = d_outputs[1];
    // The gradient of a key bias is a sum of score gradients, without the key whose bias is
    // subtracted. So it is the gradient of the whole lse.
    if (d_lse.defined() && data.key_bias.defined() && !data.whole_lse)
      fail("attend: key_bias: expected no gradient of lse, which is relative to it, but got one");
    if (d_lse.defined()) add_lse_column(d_lse, d_out, out, data);
    Wanted wanted = {};
    size_t inputs = 0;
    for (size_t n = 0; n < kDifferentiable; ++n)
      if (saved[n].defined()) wanted[n] = context->needs_input_grad(inputs++);
    variable_list d_inputs;
    if (d_out.defined()) {
      variable_list read = {d_out, out, saved[kDifferentiable + 1]};
      for (const at::Tensor* x : operands)
        if (x->defined()) read.push_back(*x);
      variable_list grads = without_derivatives(read, [&] {
        const Gradients all =
            own.call.backward(d_out, out, saved[kDifferentiable + 1], wanted, data);
        return variable_list(all.begin(), all.end());
      });
      size_t n = 0;
      each_differentiable([&](auto operand) {
        const size_t at = n++;
        if (!saved[at].defined()) return;
        at::Tensor grad = wanted[at] ? std::move(grads[at]) : at::Tensor();
        if (d_lse.defined() && grad.defined() && operand.has(Axis::kValueColumns))
          grad = grad.slice(-1, 0, -1);
        d_inputs.push_back(std::move(grad));
      });
    }
    d_inputs.resize(inputs + 2);  // `call` and `data` have no gradients
    return d_inputs;
  }
};

class Once : public torch::autograd::Function<Once> {
 public:
  static variable_list forward(AutogradContext*, at::TensorList /*inputs*/,
                               const std::function<variable_list()>& run) {
    return run();
  }

  static variable_list backward(AutogradContext*, const variable_list&) {
    fail(
        "attend_backward: expected no derivative of its results (attend has first derivatives "
        "only), but got a request for one");
  }
};

}  // namespace

std::vector<at::Tensor> without_derivatives(const std::vector<at::Tensor>& inputs,
                                            const std::function<std::vector<at::Tensor>()>& run) {
  return Once::apply(at::TensorList(inputs), run);
}

bool wants_gradient(const TensorData& data) {
  if (!at::GradMode::is_enabled()) return false;
  TensorData d = data;
  return std::ranges::any_of(
      differentiable(d), [](const at::Tensor* x) { return x->defined() && x->requires_grad(); });
}

std::tuple<at::Tensor, at::Tensor> differentiably(AttendCall call, const TensorData& data) {
  TensorData d = data;
  variable_list inputs;
  for (const at::Tensor* x : differentiable(d))
    if (x->defined()) inputs.push_back(*x);
  const variable_list outputs =
      Attend::apply(at::TensorList(inputs), std::move(call), std::move(d));
  return {outputs[0], outputs[1]};
}

using BelowAutograd = at::AutoDispatchBelowADInplaceOrView;

std::tuple<at::Tensor, at::Tensor> attend_planned(const std::shared_ptr<const TensorPlan>& plan,
                                                  const TensorData& data) {
  if (!wants_gradient(data)) {
    const BelowAutograd guard;
    return run_attend(data, *plan, /*trains=*/false);
  }
  const auto forward = [plan](const TensorData& own) {
    const BelowAutograd guard;
    return run_attend(own, *plan, /*trains=*/true);
  };
  const auto backward = [plan](const at::Tensor& d_out, const at::Tensor& out,
                               const at::Tensor& lse, const Wanted& wanted, const TensorData& own) {
    const BelowAutograd guard;
    check_data(own);
    check_results(own, d_out, out, lse);
    return run_attend_backward(d_out, out, lse, wanted, own, *plan);
  };
  return differentiably({forward, backward}, data);
}

std::tuple<at::Tensor, at::Tensor> attend_shapes(const TensorData& data) {
  const auto forward = [](const TensorData& own) {
    const BelowAutograd guard;
    return new_results(own);
  };
  const auto backward = [](const at::Tensor&, const at::Tensor&, const at::Tensor&,
                           const Wanted& wanted, const TensorData& own) {
    const BelowAutograd guard;
    return new_gradients(own, wanted);
  };
  return differentiably({forward, backward}, data);
}

}  // namespace sextant
