// FLOATER's differential equation, its solver and its two kinds of gradient.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv_transpose1d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/selu.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>

#include "sextant/base/error.h"
#include "sextant/torch/methods/shared/recurrences.h"
#include "sextant/torch/operators/checkpointed.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kTimePerPosition = 0.01;
constexpr int kSteps = 5;  // per position

// x with the time t appended along dimension `dim`.
at::Tensor with_time(const at::Tensor& x, double t, int64_t dim) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes[static_cast<size_t>(dim)] = 1;
  return at::cat({x, at::full(sizes, t, x.options())}, dim);
}

at::Tensor speed(Flow flow, double t, const at::Tensor& p, std::span<const at::Tensor> w) {
  if (flow == Flow::kLinear)
    return at::linear(with_time(at::relu(at::linear(with_time(p, t, 2), w[0], w[1])), t, 2), w[2],
                      w[3]);
  const at::Tensor inner = at::selu(at::conv1d(with_time(p, t, 1), w[0], w[1], 2, 2));
  return at::conv_transpose1d(with_time(inner, t, 1), w[2], w[3], 2, 2, 1);
}

// One tensor, or several that are integrated together (for the adjoint equation).
using State = std::vector<at::Tensor>;
using Speed = std::function<State(double t, const State& y)>;

State moved(const State& y, std::initializer_list<std::pair<double, const State*>> by) {
  State result = y;
  for (size_t n = 0; n < y.size(); ++n)
    for (const auto& [factor, k] : by) result[n] = result[n] + factor * (*k)[n];
  return result;
}

// One step of the Runge-Kutta 3/8 rule, from t to t + h.
State step(const Speed& f, double t, double h, const State& y) {
  const State k1 = f(t, y);
  const State k2 = f(t + h / 3, moved(y, {{h / 3, &k1}}));
  const State k3 = f(t + 2 * h / 3, moved(y, {{-h / 3, &k1}, {h, &k2}}));
  const State k4 = f(t + h, moved(y, {{h, &k1}, {-h, &k2}, {h, &k3}}));
  return moved(y, {{h / 8, &k1}, {3 * h / 8, &k2}, {3 * h / 8, &k3}, {h / 8, &k4}});
}

// Integrates from position k to k + 1 (direction 1) or to k - 1 (direction -1).
State to_neighbour(const Speed& f, int64_t k, int direction, State y) {
  const double h = direction * kTimePerPosition / kSteps;
  for (int n = 0; n < kSteps; ++n)
    y = step(f, kTimePerPosition * static_cast<double>(k) + n * h, h, y);
  return y;
}

Speed speed_of(Flow flow, std::span<const at::Tensor> weights) {
  return [flow, weights](double t, const State& y) -> State {
    return {speed(flow, t, y[0], weights)};
  };
}

at::Tensor solve(const at::Tensor& start, std::span<const at::Tensor> weights, int64_t length,
                 Flow flow) {
  std::vector<int64_t> sizes = {length};
  sizes.insert(sizes.end(), start.sizes().begin(), start.sizes().end());
  // Rows are written into one tensor: small tensors that are stacked at the end would occupy as
  // much memory again.
  at::Tensor rows = at::empty(sizes, start.options());
  State y = {start};
  for (int64_t k = 0; k < length; ++k) {
    if (k > 0) y = to_neighbour(speed_of(flow, weights), k - 1, 1, std::move(y));
    rows[k].copy_(y[0]);
  }
  return rows;
}

// Returns the gradients of the start and of each weight.
using Back = variable_list (*)(Flow flow, const at::Tensor& rows, const variable_list& weights,
                               const at::Tensor& d_rows);

// Backpropagates through the solver's own steps, from the last position to the first; the steps
// after each position are computed again from its stored row.
variable_list back_through_steps(Flow flow, const at::Tensor& rows, const variable_list& weights,
                                 const at::Tensor& d_rows) {
  variable_list sums = {d_rows[-1]};
  for (const at::Tensor& w : weights) sums.push_back(at::zeros_like(w));
  for (int64_t k = rows.size(0) - 2; k >= 0; --k) {
    const auto next = [&](const variable_list& leaves) {
      return to_neighbour(speed_of(flow, std::span(leaves).subspan(1)), k, 1, {leaves[0]});
    };
    variable_list leaves = {rows[k]};
    leaves.insert(leaves.end(), weights.begin(), weights.end());
    const variable_list grads = gradients_of_results(next, leaves, {sums[0]});
    sums[0] = d_rows[k] + grads[0];
    for (size_t n = 1; n < sums.size(); ++n) sums[n] += grads[n];
  }
  return sums;
}

State speed_back(Flow flow, double t, const State& y, const variable_list& weights) {
  const at::AutoGradMode enabled(true);
  variable_list leaves = {y[0].detach().requires_grad_()};
  for (const at::Tensor& w : weights) leaves.push_back(w.detach().requires_grad_());
  const at::Tensor h = speed(flow, t, leaves[0], std::span(leaves).subspan(1));
  State result = {h.detach()};
  for (const at::Tensor& g : torch::autograd::grad({h}, leaves, {-y[1]})) result.push_back(g);
  return result;
}

// With a(t) = dL/dp(t): da/dt = -a dh/dp, and dL/dw accumulates -a dh/dw. Both are integrated
// backwards together with p, which restarts from the stored row at each position (Chen et al. 2018,
// arXiv 1806.07366).
variable_list back_by_adjoint(Flow flow, const at::Tensor& rows, const variable_list& weights,
                              const at::Tensor& d_rows) {
  const Speed f = [&](double t, const State& y) { return speed_back(flow, t, y, weights); };
  // y = [p, a, gradients of the weights]
  State y = {rows[-1], d_rows[-1]};
  for (const at::Tensor& w : weights) y.push_back(at::zeros_like(w));
  for (int64_t k = rows.size(0) - 1; k > 0; --k) {
    y[0] = rows[k];
    y = to_neighbour(f, k, -1, std::move(y));
    y[1] = y[1] + d_rows[k - 1];
  }
  return {y.begin() + 1, y.end()};
}

// Saves the rows and nothing of the steps between them.
class Integral : public torch::autograd::Function<Integral> {
 public:
  static at::Tensor forward(AutogradContext* context, at::TensorList inputs, int64_t length,
                            int64_t flow, bool adjoint) {
    at::Tensor rows = solve(inputs[0], inputs.slice(1).vec(), length, static_cast<Flow>(flow));
    variable_list saved = inputs.vec();
    saved.push_back(rows);
    context->save_for_backward(std::move(saved));
    context->saved_data["flow"] = flow;
    context->saved_data["adjoint"] = adjoint;
    return rows;
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_rows) {
    expect_first_derivative("floater_positions");
    const variable_list saved = context->get_saved_variables();
    const Back back =
        context->saved_data["adjoint"].toBool() ? back_by_adjoint : back_through_steps;
    variable_list grads = back(static_cast<Flow>(context->saved_data["flow"].toInt()), saved.back(),
                               {saved.begin() + 1, saved.end() - 1}, d_rows[0]);
    grads.resize(grads.size() + 3);  // no gradients for `length`, `flow` and `adjoint`
    return grads;
  }
};

void check(const at::Tensor& start, std::span<const at::Tensor> weights) {
  if (start.dim() != 3 || start.size(0) != 3)
    fail("floater_positions: start: expected [3, layers, width], but got " +
         std::to_string(start.dim()) + " dimensions");
  if (weights.size() != 4)
    fail("floater_positions: weights: expected W1, b1, W2, b2, but got " +
         std::to_string(weights.size()));
}

}  // namespace

at::Tensor floater_positions(const at::Tensor& start, std::span<const at::Tensor> weights,
                             int64_t length, Flow flow, FlowGradient gradient) {
  check(start, weights);
  if (length <= 0) return at::empty({0, 3, start.size(1), start.size(2)}, start.options());
  variable_list inputs = {start};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  return Integral::apply(at::TensorList(inputs), length, static_cast<int64_t>(flow),
                         gradient == FlowGradient::kAdjoint);
}

}  // namespace sextant
