#include "sextant/torch/operators/checkpointed.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/operators/kept.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList inputs,
                               TensorFunction run) {
    variable_list results = run(inputs.vec());
    context->save_for_backward(inputs.vec());
    context->set_materialize_grads(false);
    keep(context, std::move(run));
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_results) {
    expect_first_derivative("attend");
    variable_list gradients = gradients_of_results(kept<TensorFunction>(context),
                                                   context->get_saved_variables(), d_results);
    gradients.emplace_back();  // `run` has no gradient
    return gradients;
  }
};

}  // namespace

void expect_first_derivative(const char* what) {
  if (at::GradMode::is_enabled())
    fail(std::string(what) +
         ": expected no derivative of its gradients (it has first derivatives only), but got a "
         "request for one");
}

std::vector<at::Tensor> gradients_of_results(const TensorFunction& run,
                                             const std::vector<at::Tensor>& inputs,
                                             const std::vector<at::Tensor>& d_outs) {
  return gradients_by_results(run, inputs, [&](const variable_list&) { return d_outs; });
}

std::vector<at::Tensor> gradients_by_results(const TensorFunction& run,
                                             const std::vector<at::Tensor>& inputs,
                                             const TensorFunction& d_of) {
  const at::AutoGradMode enabled(true);
  variable_list leaves;
  for (const at::Tensor& x : inputs) leaves.push_back(x.detach().requires_grad_());
  const variable_list all = run(leaves);
  variable_list d_outs;
  {
    const at::AutoGradMode disabled(false);
    d_outs = d_of(all);
  }
  variable_list results, d_results;
  for (size_t n = 0; n < all.size(); ++n)
    if (d_outs[n].defined() && all[n].requires_grad()) {
      results.push_back(all[n]);
      d_results.push_back(d_outs[n]);
    }
  if (results.empty()) return variable_list(inputs.size());
  return torch::autograd::grad(results, leaves, d_results, /*retain_graph=*/false,
                               /*create_graph=*/false, /*allow_unused=*/true);
}

std::vector<at::Tensor> checkpointed(TensorFunction run, const std::vector<at::Tensor>& inputs) {
  return Recomputed::apply(at::TensorList(inputs), std::move(run));
}

}  // namespace sextant
