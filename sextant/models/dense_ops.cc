#include "sextant/models/dense_ops.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "sextant/dense/product.h"
#include "sextant/dense/rows.h"
#include "sextant/torch/executor.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// With fewer the product is over before the weight is packed, and a BLAS reads it where it lies.
constexpr int64_t kFewRows = 32;

// [rows, columns] of a contiguous tensor whose last dimension is columns.
dense::Matrix matrix_of(const at::Tensor& x) {
  const int64_t columns = x.size(-1);
  return {x.data_ptr<float>(), columns > 0 ? x.numel() / columns : 0, columns, columns};
}

at::Tensor product(const dense::Matrix& a, const dense::Matrix& b, at::IntArrayRef sizes,
                   const at::Tensor& base, const at::TensorOptions& options) {
  at::Tensor c = at::empty(sizes, options);
  dense::multiply(a, b, base.defined() ? base.data_ptr<float>() : nullptr, c.data_ptr<float>(),
                  torch_executor());
  return c;
}

// inputs: x, weight and, if there is one, base.
class Projected : public torch::autograd::Function<Projected> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList inputs) {
    const at::Tensor x = inputs[0].contiguous(), weight = inputs[1].contiguous();
    const at::Tensor base = inputs.size() > 2 ? inputs[2].contiguous() : at::Tensor();
    context->save_for_backward({x, weight});
    context->saved_data["inputs"] = static_cast<int64_t>(inputs.size());
    const dense::Matrix rows = matrix_of(x);
    if (rows.rows < kFewRows) {
      const at::Tensor y = at::linear(x, weight);
      return {base.defined() ? at::add(base, y) : y};
    }
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    return {product(rows, matrix_of(weight).transposed(), sizes, base, x.options())};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const at::Tensor d_y = d_outputs[0].contiguous();
    variable_list d_inputs = {at::Tensor(), at::Tensor()};
    if (context->needs_input_grad(0))
      d_inputs[0] = product(matrix_of(d_y), matrix_of(weight), x.sizes(), {}, x.options());
    if (context->needs_input_grad(1))
      d_inputs[1] =
          product(matrix_of(d_y).transposed(), matrix_of(x), weight.sizes(), {}, x.options());
    if (context->saved_data.at("inputs").toInt() > 2) d_inputs.push_back(d_y);
    return d_inputs;
  }
};

dense::Norm norm_of(const at::Tensor& x, double epsilon, bool centered) {
  return {.rows = matrix_of(x).rows, .width = x.size(-1), .epsilon = epsilon, .centered = centered};
}

class Normalized : public torch::autograd::Function<Normalized> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& input,
                               const at::Tensor& gain, double epsilon, bool centered) {
    const at::Tensor x = input.contiguous(), y = at::empty_like(x);
    const dense::Norm norm = norm_of(x, epsilon, centered);
    const at::Tensor statistics = at::empty({2, norm.rows}, x.options());
    auto* const mean = statistics.data_ptr<float>();
    dense::normalize(norm, x.data_ptr<float>(), gain.data_ptr<float>(), y.data_ptr<float>(), mean,
                     mean + norm.rows, torch_executor());
    context->save_for_backward({x, gain, statistics});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["centered"] = centered;
    return {y};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gain = saved[1];
    const at::Tensor d_y = d_outputs[0].contiguous();
    const dense::Norm norm = norm_of(x, context->saved_data.at("epsilon").toDouble(),
                                     context->saved_data.at("centered").toBool());
    const auto* const mean = saved[2].data_ptr<float>();
    at::Tensor d_x = at::empty_like(x), d_gain = at::empty_like(gain);
    dense::differentiate_norm(norm, x.data_ptr<float>(), gain.data_ptr<float>(), mean,
                              mean + norm.rows, d_y.data_ptr<float>(), d_x.data_ptr<float>(),
                              d_gain.data_ptr<float>(), torch_executor());
    return {d_x, d_gain, {}, {}};
  }
};

class SquaredRelu : public torch::autograd::Function<SquaredRelu> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& input) {
    const at::Tensor x = input.contiguous(), y = at::empty_like(x);
    dense::square_relu(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), torch_executor());
    context->save_for_backward({x});
    return {y};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_outputs) {
    const at::Tensor x = context->get_saved_variables()[0], d_y = d_outputs[0].contiguous();
    at::Tensor d_x = at::empty_like(x);
    dense::differentiate_square_relu(x.data_ptr<float>(), d_y.data_ptr<float>(),
                                     d_x.data_ptr<float>(), x.numel(), torch_executor());
    return {d_x};
  }
};

}  // namespace

at::Tensor projected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& base) {
  variable_list inputs = {x, weight};
  if (base.defined()) inputs.push_back(base);
  return Projected::apply(at::TensorList(inputs))[0];
}

at::Tensor normalized(const at::Tensor& x, const at::Tensor& gain, double epsilon, bool centered) {
  return Normalized::apply(x, gain, epsilon, centered)[0];
}

at::Tensor squared_relu(const at::Tensor& x) { return SquaredRelu::apply(x)[0]; }

}  // namespace sextant
