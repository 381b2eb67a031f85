// Each operation is an autograd function over the one of sextant/dense, and a libtorch function
// where rows are few or tensors are on a device.
#include "sextant/models/dense_ops.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/dense/cross_entropy.h"
#include "sextant/dense/norm.h"
#include "sextant/dense/product.h"
#include "sextant/torch/operators/device_call.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// For fewer rows, packing the weight costs more than the product; at::linear reads it in place.
constexpr int64_t kFewRows = 32;

// [rows, columns] of a contiguous tensor whose last dimension is columns.
dense::Matrix matrix_of(const at::Tensor& x) {
  const int64_t columns = x.size(-1);
  return {x.data_ptr<float>(), columns > 0 ? x.numel() / columns : 0, columns, columns};
}

at::Tensor product(const dense::Matrix& a, const dense::Matrix& b, at::IntArrayRef sizes,
                   const dense::Epilogue& finish, const at::TensorOptions& options) {
  at::Tensor c = at::empty(sizes, options);
  dense::multiply(a, b, finish, c.data_ptr<float>(), torch_executor());
  return c;
}

bool few(const at::Tensor& x) { return matrix_of(x).rows < kFewRows; }

// x weight^T with the epilogue `finish`, for at least kFewRows rows of x.
at::Tensor outputs_of(const at::Tensor& x, const at::Tensor& weight,
                      const dense::Epilogue& finish) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return product(matrix_of(x), matrix_of(weight).transposed(), sizes, finish, x.options());
}

at::Tensor multiplied(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& base) {
  if (!few(x))
    return outputs_of(x, weight, {.base = base.defined() ? base.data_ptr<float>() : nullptr});
  const at::Tensor y = at::linear(x, weight);
  return base.defined() ? at::add(base, y) : y;
}

at::Tensor input_gradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& d_y,
                          const dense::Epilogue& finish = {}) {
  return product(matrix_of(d_y), matrix_of(weight), x.sizes(), finish, x.options());
}

at::Tensor weight_gradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& d_y) {
  return product(matrix_of(d_y).transposed(), matrix_of(x), weight.sizes(), {}, x.options());
}

// inputs: x, weight and optionally base.
class Projected : public torch::autograd::Function<Projected> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList inputs) {
    const at::Tensor x = inputs[0].contiguous(), weight = inputs[1].contiguous();
    const at::Tensor base = inputs.size() > 2 ? inputs[2].contiguous() : at::Tensor();
    context->save_for_backward({x, weight});
    context->saved_data["inputs"] = static_cast<int64_t>(inputs.size());
    return {multiplied(x, weight, base)};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const at::Tensor d_y = d_outputs[0].contiguous();
    variable_list d_inputs = {at::Tensor(), at::Tensor()};
    if (context->needs_input_grad(0)) d_inputs[0] = input_gradient(x, weight, d_y);
    if (context->needs_input_grad(1)) d_inputs[1] = weight_gradient(x, weight, d_y);
    if (context->saved_data.at("inputs").toInt() > 2) d_inputs.push_back(d_y);
    return d_inputs;
  }
};

struct Normed {
  at::Tensor y, statistics;
};

dense::Norm norm_of(const at::Tensor& x, const NormOptions& options) {
  return {.rows = matrix_of(x).rows,
          .width = x.size(-1),
          .epsilon = options.epsilon,
          .centered = options.centered};
}

Normed normalize(const at::Tensor& x, const at::Tensor& gain, const NormOptions& options) {
  const dense::Norm norm = norm_of(x, options);
  Normed result = {at::empty_like(x), at::empty({2, norm.rows}, x.options())};
  auto* const mean = result.statistics.data_ptr<float>();
  dense::normalize(norm, x.data_ptr<float>(), gain.data_ptr<float>(), result.y.data_ptr<float>(),
                   mean, mean + norm.rows, torch_executor());
  return result;
}

struct NormGradients {
  at::Tensor x, gain;
};

// base is added to the gradient of x; it may be undefined.
NormGradients differentiate_norm(const at::Tensor& x, const at::Tensor& gain,
                                 const at::Tensor& statistics, const NormOptions& options,
                                 const at::Tensor& d_y, const at::Tensor& base) {
  const dense::Norm norm = norm_of(x, options);
  const auto* const mean = statistics.data_ptr<float>();
  NormGradients d = {at::empty_like(x), at::empty_like(gain)};
  dense::differentiate_norm(
      norm, {x.data_ptr<float>(), gain.data_ptr<float>(), mean, mean + norm.rows},
      d_y.data_ptr<float>(), base.defined() ? base.data_ptr<float>() : nullptr,
      d.x.data_ptr<float>(), d.gain.data_ptr<float>(), torch_executor());
  return d;
}

void save(AutogradContext& context, const NormOptions& options) {
  context.saved_data["epsilon"] = options.epsilon;
  context.saved_data["centered"] = options.centered;
}

NormOptions saved_norm(const AutogradContext& context) {
  return {.epsilon = context.saved_data.at("epsilon").toDouble(),
          .centered = context.saved_data.at("centered").toBool()};
}

class Normalized : public torch::autograd::Function<Normalized> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& input,
                               const at::Tensor& gain, const NormOptions& options) {
    const at::Tensor x = input.contiguous();
    const Normed normed = normalize(x, gain, options);
    context->save_for_backward({x, gain, normed.statistics});
    save(*context, options);
    return {normed.y};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const NormGradients d = differentiate_norm(saved[0], saved[1], saved[2], saved_norm(*context),
                                               d_outputs[0].contiguous(), {});
    return {d.x, d.gain, {}};
  }
};

// For at least kFewRows rows of x.
class SquaredReluLayer : public torch::autograd::Function<SquaredReluLayer> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& input,
                               const at::Tensor& gain, const at::Tensor& up_weight,
                               const at::Tensor& down_weight, const NormOptions& options) {
    const at::Tensor x = input.contiguous(), up = up_weight.contiguous(),
                     down = down_weight.contiguous();
    const Normed normed = normalize(x, gain, options);
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = up.size(0);
    const at::Tensor hidden = at::empty(sizes, x.options());
    const at::Tensor raised = outputs_of(normed.y, up, {.squared_relu = hidden.data_ptr<float>()});
    context->save_for_backward({x, gain, normed.statistics, normed.y, up, raised, hidden, down});
    save(*context, options);
    return {outputs_of(hidden, down, {.base = x.data_ptr<float>()})};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gain = saved[1], &statistics = saved[2], &normed = saved[3];
    const at::Tensor &up = saved[4], &raised = saved[5], &hidden = saved[6], &down = saved[7];
    const at::Tensor d_y = d_outputs[0].contiguous();
    const at::Tensor d_raised =
        input_gradient(hidden, down, d_y, {.slope_at = raised.data_ptr<float>()});
    const NormGradients d = differentiate_norm(x, gain, statistics, saved_norm(*context),
                                               input_gradient(normed, up, d_raised), d_y);
    return {
        d.x, d.gain, weight_gradient(normed, up, d_raised), weight_gradient(hidden, down, d_y), {}};
  }
};

class CrossEntropy : public torch::autograd::Function<CrossEntropy> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& input,
                               const at::Tensor& targets) {
    const at::Tensor logits = input.contiguous();
    at::Tensor loss = at::empty({logits.size(0)}, logits.options()), lse = at::empty_like(loss);
    dense::cross_entropy(answers(logits, targets), loss.data_ptr<float>(), lse.data_ptr<float>(),
                         torch_executor());
    context->save_for_backward({logits, targets, lse});
    return {loss};
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], d_loss = d_outputs[0].contiguous();
    at::Tensor d_logits = at::empty_like(logits);
    dense::differentiate_cross_entropy(answers(logits, saved[1]), saved[2].data_ptr<float>(),
                                       d_loss.data_ptr<float>(), d_logits.data_ptr<float>(),
                                       torch_executor());
    return {d_logits, {}};
  }

 private:
  static dense::Answers answers(const at::Tensor& logits, const at::Tensor& targets) {
    return {logits.data_ptr<float>(), targets.data_ptr<int64_t>(), logits.size(0), logits.size(1)};
  }
};

}  // namespace

at::Tensor projected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& base) {
  if (!x.is_cpu()) {
    const at::Tensor y = at::linear(x, weight);
    return base.defined() ? base + y : y;
  }
  variable_list inputs = {x, weight};
  if (base.defined()) inputs.push_back(base);
  return Projected::apply(at::TensorList(inputs))[0];
}

at::Tensor normalized(const at::Tensor& x, const at::Tensor& gain, const NormOptions& options) {
  if (!x.is_cpu()) {
    if (options.centered) return at::layer_norm(x, gain.sizes(), gain, {}, options.epsilon);
    return x * (x.square().mean(-1, /*keepdim=*/true) + options.epsilon).rsqrt() * gain;
  }
  return Normalized::apply(x, gain, options)[0];
}

at::Tensor squared_relu_layer(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& up,
                              const at::Tensor& down, const NormOptions& options) {
  if (x.is_cpu() && !few(x)) return SquaredReluLayer::apply(x, gain, up, down, options)[0];
  const at::Tensor raised = projected(normalized(x, gain, options), up);
  return projected(at::relu(raised).square(), down, x);
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor whole = targets.contiguous();
  if (logits.dim() != 2)
    fail("cross_entropy: logits: expected 2 dimensions, but got " + std::to_string(logits.dim()));
  if (whole.numel() != logits.size(0))
    fail("cross_entropy: targets: expected one for each row of logits, but got " +
         std::to_string(whole.numel()));
  const at::Tensor on_host = whole.cpu();
  const auto* const columns = on_host.data_ptr<int64_t>();
  for (int64_t n = 0; n < whole.numel(); ++n)
    if (columns[n] < 0 || columns[n] >= logits.size(1))
      fail("cross_entropy: targets: expected 0 to " + std::to_string(logits.size(1) - 1) +
           ", but got " + std::to_string(columns[n]));
  if (!logits.is_cpu())
    return at::cross_entropy_loss(logits, whole, /*weight=*/{}, at::Reduction::None);
  return CrossEntropy::apply(logits, whole)[0];
}

}  // namespace sextant
