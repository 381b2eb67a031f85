#include "sextant/torch/methods/shared/recurrences.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>

#include <algorithm>
#include <tuple>

#include "sextant/base/error.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

constexpr double kTimeStep = 0.01;

at::Tensor stacked(const std::vector<at::Tensor>& rows, const at::Tensor& like) {
  if (!rows.empty()) return at::stack(rows);
  std::vector<int64_t> sizes = {0};
  sizes.insert(sizes.end(), like.sizes().begin(), like.sizes().end());
  return at::empty(sizes, like.options());
}

// One step of one layer: x [..., inputs], h [..., width].
at::Tensor gru_step(const at::Tensor& x, const at::Tensor& h, std::span<const at::Tensor> w) {
  const auto from_x = at::linear(x, w[0], w[2]).chunk(3, -1);
  const auto from_h = at::linear(h, w[1], w[3]).chunk(3, -1);
  const at::Tensor reset = at::sigmoid(from_x[0] + from_h[0]);
  const at::Tensor keep = at::sigmoid(from_x[1] + from_h[1]);
  const at::Tensor candidate = at::tanh(from_x[2] + reset * from_h[2]);
  return (1 - keep) * candidate + keep * h;
}

// [positions, width] -> [1, heads, positions, head_dim]
at::Tensor as_heads(const at::Tensor& rows, const at::Tensor& positions, int64_t heads) {
  const at::Tensor seen = rows.index_select(0, on_device_of(rows, positions));
  return seen.view({seen.size(0), heads, seen.size(1) / heads}).transpose(0, 1).unsqueeze(0);
}

}  // namespace

at::Tensor tanh_positions(const at::Tensor& start, const at::Tensor& weight, const at::Tensor& bias,
                          int64_t length) {
  std::vector<at::Tensor> rows;
  for (at::Tensor p = start; static_cast<int64_t>(rows.size()) < length;
       p = at::tanh(at::linear(p, weight, bias)))
    rows.push_back(p);
  return stacked(rows, start);
}

at::Tensor gru_positions(const at::Tensor& h0, std::span<const at::Tensor> weights,
                         int64_t length) {
  const int64_t depth = h0.size(0);
  if (static_cast<int64_t>(weights.size()) != 4 * depth)
    fail("gru_positions: weights: expected " + std::to_string(4 * depth) + ", but got " +
         std::to_string(weights.size()));
  std::vector<at::Tensor> state = h0.unbind(0), rows;
  std::vector<int64_t> sizes = state[0].sizes().vec();
  sizes.back() = 1;
  for (int64_t k = 0; k < length; ++k) {
    at::Tensor x = at::full(sizes, kTimeStep * static_cast<double>(k), h0.options());
    for (size_t layer = 0; layer < state.size(); ++layer)
      x = state[layer] = gru_step(x, state[layer], weights.subspan(4 * layer, 4));
    rows.push_back(x);
  }
  return stacked(rows, state[0]);
}

at::Tensor input_states(InputCell cell, const at::Tensor& x, const at::Tensor& state,
                        std::span<const at::Tensor> weights) {
  const at::TensorList all(weights.data(), weights.size());
  const at::Tensor start = state.unsqueeze(0);
  const auto run = cell == InputCell::kGru
                       ? at::gru(x, start, all, /*has_biases=*/true, /*num_layers=*/1,
                                 /*dropout=*/0, /*train=*/false, /*bidirectional=*/false,
                                 /*batch_first=*/true)
                       : at::rnn_tanh(x, start, all, /*has_biases=*/true, /*num_layers=*/1,
                                      /*dropout=*/0, /*train=*/false, /*bidirectional=*/false,
                                      /*batch_first=*/true);
  return std::get<0>(run);
}

void check_injectable(const std::string& method, const ModelShape& shape) {
  if (shape.key_heads != shape.heads)
    fail(method + ": key_heads: expected " + std::to_string(shape.heads) +
         " (as many as query heads), but got " + std::to_string(shape.key_heads));
  if (shape.heads * shape.head_dim != shape.width)
    fail(method + ": width: expected heads * head_dim = " +
         std::to_string(shape.heads * shape.head_dim) + ", but got " + std::to_string(shape.width));
}

int64_t injected_rows(const Layout& layout) {
  int64_t rows = 0;
  for (const at::Tensor& positions : {query_positions(layout), key_positions(layout)})
    for (int64_t n = 0; n < positions.numel(); ++n) {
      const int64_t t = positions.data_ptr<int64_t>()[n];
      if (t < 0)
        fail("injected positions: expected positions of at least 0, but got " + std::to_string(t));
      rows = std::max(rows, t + 1);
    }
  return rows;
}

void add_layer_positions(TensorOperands& operands, const Layout& layout, const at::Tensor& rows) {
  const int64_t heads = operands.q.size(1);
  const at::Tensor queries = query_positions(layout), keys = key_positions(layout);
  // unbind instead of three selects: the gradient of each select would have the size of `rows`.
  const std::vector<at::Tensor> each = rows.unbind(1);
  operands.q = operands.q + as_heads(each[0], queries, heads);
  operands.k = operands.k + as_heads(each[1], keys, heads);
  operands.v = operands.v + as_heads(each[2], keys, heads);
}

}  // namespace sextant
