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
    context->mark_non_differentiable({results.begin() + 1, results.end()});
    context->saved_data["run"] =
        c10::IValue::make_capsule(c10::make_intrusive<Kept>(std::move(run)));
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_results) {
    expect_first_derivative("attend");
    const auto kept = context->saved_data.at("run").toCapsule();
    const Computation& run = static_cast<const Kept&>(*kept).run;
    variable_list gradients =
        gradients_at([&](const variable_list& inputs) { return run(inputs)[0]; },
                     context->get_saved_variables(), d_results[0]);
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
  const at::AutoGradMode enabled(true);
  variable_list leaves;
  for (const at::Tensor& x : inputs) leaves.push_back(x.detach().requires_grad_());
  return torch::autograd::grad({run(leaves)}, leaves, {d_out}, /*retain_graph=*/false,
                               /*create_graph=*/false, /*allow_unused=*/true);
}

std::vector<at::Tensor> checkpointed(
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> run,
    const std::vector<at::Tensor>& inputs) {
  return Recomputed::apply(at::TensorList(inputs), std::move(run));
}

}  // namespace sextant
