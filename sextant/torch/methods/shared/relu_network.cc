// The units' zeros, sorted, are the ends of the pieces. An element needs its piece alone, and
// gradients are sums over the elements of each piece.
#include "sextant/torch/methods/shared/relu_network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sextant/torch/operators/checkpointed.h"
#include "sextant/torch/operators/device_call.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kElementsOfTask = 1 << 14;

// A linear function slope x + start, or its gradient.
struct Line {
  double slope = 0, start = 0;
};

std::vector<double> doubles(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::kDouble).contiguous();
  return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
}

// The linear pieces in order of increasing x; piece n lies between ends[n - 1] and ends[n].
class LinearPieces {
 public:
  explicit LinearPieces(const ReluNetwork& network)
      : in_weight_(doubles(network.in_weight)),
        in_bias_(doubles(network.in_bias)),
        out_weight_(doubles(network.out_weight)),
        out_bias_(doubles(network.out_bias)),
        finite_(true) {
    for (const auto* x : {&in_weight_, &in_bias_, &out_weight_, &out_bias_})
      finite_ =
          finite_ && std::ranges::all_of(*x, [](double value) { return std::isfinite(value); });
    if (!finite_) return;
    for (size_t u = 0; u < width(); ++u)
      if (in_weight_[u] != 0) order_.push_back(u);
    const auto end = [&](size_t u) { return -in_bias_[u] / in_weight_[u]; };
    std::ranges::sort(order_, {}, end);
    for (const size_t u : order_) ends_.push_back(end(u));
    lines_.resize(count() * heads());
    for (size_t n = 0; n < count(); ++n)
      for (size_t h = 0; h < heads(); ++h) {
        Line& line = lines_[n * heads() + h];
        line.start = out_bias_[h];
        each_active(n, [&](size_t u) {
          line.slope += out_weight_[h * width() + u] * in_weight_[u];
          line.start += out_weight_[h * width() + u] * in_bias_[u];
        });
      }
  }

  bool finite() const { return finite_; }
  size_t heads() const { return out_bias_.size(); }
  size_t width() const { return in_bias_.size(); }
  size_t count() const { return ends_.size() + 1; }
  const Line& line(size_t piece, size_t head) const { return lines_[piece * heads() + head]; }

  // Calls f(piece, from, to) for each run of consecutive elements that lie in one piece.
  template <class T, class F>
  void each_run(const T* x, int64_t from, int64_t to, F&& f) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    while (from < to) {
      const auto at = static_cast<size_t>(
          std::ranges::lower_bound(ends_, static_cast<double>(x[from])) - ends_.begin());
      const double low = at == 0 ? -kInfinity : ends_[at - 1];
      const double high = at == ends_.size() ? kInfinity : ends_[at];
      int64_t next = from + 1;
      while (next < to && low < static_cast<double>(x[next]) &&
             static_cast<double>(x[next]) <= high)
        ++next;
      f(at, from, next);
      from = next;
    }
  }

  // Calls f(unit) for each hidden unit whose ReLU is active in a piece.
  template <class F>
  void each_active(size_t piece, F&& f) const {
    for (size_t n = 0; n < order_.size(); ++n)
      if ((in_weight_[order_[n]] > 0) == (n < piece)) f(order_[n]);
    for (size_t u = 0; u < width(); ++u)
      if (in_weight_[u] == 0 && in_bias_[u] > 0) f(u);
  }

  // Converts gradients of the lines, [pieces][heads], to gradients of the network.
  ReluNetwork gradients(const std::vector<Line>& of_lines) const {
    std::vector<double> in_weight(width()), in_bias(width()), out_weight(heads() * width()),
        out_bias(heads());
    for (size_t n = 0; n < count(); ++n)
      for (size_t h = 0; h < heads(); ++h) {
        const Line& d = of_lines[n * heads() + h];
        out_bias[h] += d.start;
        each_active(n, [&](size_t u) {
          const size_t at = h * width() + u;
          out_weight[at] += d.slope * in_weight_[u] + d.start * in_bias_[u];
          in_weight[u] += d.slope * out_weight_[at];
          in_bias[u] += d.start * out_weight_[at];
        });
      }
    return {at::tensor(in_weight, at::kDouble), at::tensor(in_bias, at::kDouble),
            at::tensor(out_weight, at::kDouble), at::tensor(out_bias, at::kDouble)};
  }

 private:
  std::vector<double> in_weight_, in_bias_, out_weight_, out_bias_;
  bool finite_;
  std::vector<size_t> order_;  // hidden units, sorted by ends_
  std::vector<double> ends_;   // -b1 / w1 of the units in order_
  std::vector<Line> lines_;    // [pieces][heads]
};

int64_t tasks_of(const at::Tensor& x) {
  return (x.numel() + kElementsOfTask - 1) / kElementsOfTask;
}

template <class T>
at::Tensor forward(const LinearPieces& pieces, const at::Tensor& x) {
  const int64_t count = x.numel();
  at::Tensor y = at::empty({static_cast<int64_t>(pieces.heads()), count}, x.options());
  const T* const from = x.data_ptr<T>();
  T* const to = y.data_ptr<T>();
  torch_executor().run(tasks_of(x), [&](int64_t task, int) {
    const int64_t first = task * kElementsOfTask;
    pieces.each_run(from, first, std::min(first + kElementsOfTask, count),
                    [&](size_t piece, int64_t begin, int64_t end) {
                      for (size_t h = 0; h < pieces.heads(); ++h) {
                        const auto slope = static_cast<T>(pieces.line(piece, h).slope);
                        const auto start = static_cast<T>(pieces.line(piece, h).start);
                        T* const row = to + static_cast<int64_t>(h) * count;
                        for (int64_t i = begin; i < end; ++i) row[i] = slope * from[i] + start;
                      }
                    });
  });
  return y;
}

// Returns the gradients of the lines; also writes the gradient of x if d_x is defined.
template <class T>
std::vector<Line> backward(const LinearPieces& pieces, const at::Tensor& x, const at::Tensor& d_y,
                           const at::Tensor& d_x) {
  const int64_t count = x.numel();
  const T* const from = x.data_ptr<T>();
  const T* const above = d_y.data_ptr<T>();
  T* const below = d_x.defined() ? d_x.data_ptr<T>() : nullptr;
  std::vector<std::vector<Line>> sums(static_cast<size_t>(tasks_of(x)));
  torch_executor().run(tasks_of(x), [&](int64_t task, int) {
    std::vector<Line>& lines = sums[static_cast<size_t>(task)];
    lines.resize(pieces.count() * pieces.heads());
    const int64_t first = task * kElementsOfTask, last = std::min(first + kElementsOfTask, count);
    if (below) std::fill(below + first, below + last, T{0});
    pieces.each_run(from, first, last, [&](size_t piece, int64_t begin, int64_t end) {
      for (size_t h = 0; h < pieces.heads(); ++h) {
        const T* const row = above + static_cast<int64_t>(h) * count;
        Line sum;
        for (int64_t i = begin; i < end; ++i) {
          sum.slope += static_cast<double>(row[i]) * static_cast<double>(from[i]);
          sum.start += static_cast<double>(row[i]);
        }
        Line& line = lines[piece * pieces.heads() + h];
        line.slope += sum.slope;
        line.start += sum.start;
        if (!below) continue;
        const auto slope = static_cast<T>(pieces.line(piece, h).slope);
        for (int64_t i = begin; i < end; ++i) below[i] += slope * row[i];
      }
    });
  });
  std::vector<Line> all(pieces.count() * pieces.heads());
  for (const std::vector<Line>& lines : sums)
    for (size_t n = 0; n < all.size(); ++n) {
      all[n].slope += lines[n].slope;
      all[n].start += lines[n].start;
    }
  return all;
}

class Evaluate : public torch::autograd::Function<Evaluate> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& in_weight, const at::Tensor& in_bias,
                            const at::Tensor& out_weight, const at::Tensor& out_bias) {
    context->save_for_backward({x, in_weight, in_bias, out_weight, out_bias});
    const LinearPieces pieces({in_weight, in_bias, out_weight, out_bias});
    if (!pieces.finite()) return at::full({out_bias.numel(), x.numel()}, std::nan(""), x.options());
    const at::Tensor dense = x.contiguous();
    return x.scalar_type() == at::kFloat ? sextant::forward<float>(pieces, dense)
                                         : sextant::forward<double>(pieces, dense);
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_y) {
    expect_first_derivative("attend");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor dense = saved[0].contiguous(), above = d_y[0].contiguous();
    variable_list gradients(saved.size());
    if (context->needs_input_grad(0)) gradients[0] = at::empty(saved[0].sizes(), dense.options());
    const LinearPieces pieces({saved[1], saved[2], saved[3], saved[4]});
    if (!pieces.finite()) {
      for (size_t n = 0; n < saved.size(); ++n)
        gradients[n] = at::full(saved[n].sizes(), std::nan(""), saved[n].options());
      return gradients;
    }
    const std::vector<Line> lines =
        dense.scalar_type() == at::kFloat
            ? sextant::backward<float>(pieces, dense, above, gradients[0])
            : sextant::backward<double>(pieces, dense, above, gradients[0]);
    const ReluNetwork network = pieces.gradients(lines);
    size_t n = 1;
    for (const at::Tensor* x :
         {&network.in_weight, &network.in_bias, &network.out_weight, &network.out_bias}) {
      gradients[n] = x->view(saved[n].sizes()).to(saved[n].scalar_type());
      ++n;
    }
    return gradients;
  }
};

// The network unit by unit, for devices: it needs memory for the hidden units of each element.
at::Tensor evaluate_units(const ReluNetwork& network, const at::Tensor& x) {
  const auto like_x = [&](const at::Tensor& weight) { return weight.to(x.scalar_type()); };
  const at::Tensor hidden = at::relu(x.reshape({-1, 1}) * like_x(network.in_weight).view({1, -1}) +
                                     like_x(network.in_bias).view({1, -1}));
  return at::linear(hidden, like_x(network.out_weight), like_x(network.out_bias)).transpose(0, 1);
}

}  // namespace

at::Tensor evaluate(const ReluNetwork& network, const at::Tensor& x) {
  if (!x.is_cpu()) return evaluate_units(network, x);
  return Evaluate::apply(x, network.in_weight, network.in_bias, network.out_weight,
                         network.out_bias);
}

}  // namespace sextant
