#include "sextant/torch/operators/checkpointed.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <utility>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Computation = std::function<variable_list(const variable_list&)>;

// Holds a function in a context's saved_data.
struct Kept : torch::CustomClassHolder {
  explicit Kept(Computation f) : run(std::move(f)) {}
  Computation run;
};

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList inputs, Computation run) {
    variable_list results = run(inputs.vec());
    context->save_for_backward(inputs.vec());
    context->set_materialize_grads(false);
    context->saved_data["run"] =
        c10::IValue::make_capsule(c10::make_intrusive<Kept>(std::move(run)));
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_results) {
    expect_first_derivative("attend");
    const auto kept = context->saved_data.at("run").toCapsule();
    const Computation& run = static_cast<const Kept&>(*kept).run;
    variable_list gradients = gradients_of_results(run, context->get_saved_variables(), d_results);
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

std::vector<at::Tensor> gradients_at(
    const std::function<at::Tensor(const std::vector<at::Tensor>&)>& run,
    const std::vector<at::Tensor>& inputs, const at::Tensor& d_out) {
  return gradients_of_results(
      [&](const variable_list& leaves) { return variable_list{run(leaves)}; }, inputs, {d_out});
}

std::vector<at::Tensor> gradients_of_results(
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& run,
    const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& d_outs) {
  return gradients_by_results(run, inputs, [&](const variable_list&) { return d_outs; });
}

std::vector<at::Tensor> gradients_by_results(
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& run,
    const std::vector<at::Tensor>& inputs,
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& d_of) {
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

std::vector<at::Tensor> checkpointed(
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> run,
    const std::vector<at::Tensor>& inputs) {
  return Recomputed::apply(at::TensorList(inputs), std::move(run));
}

}  // namespace sextant
