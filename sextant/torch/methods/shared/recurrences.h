// Positions computed one from another: p_{k+1} = f(p_k), and the continuous limit dp/dt = h(t, p).
// Recurrences over the input beside them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

#include "sextant/torch/method.h"

namespace sextant {

// Rows p_{k+1} = tanh(W p_k + b) with p_0 [width] given: [length, width].
at::Tensor tanh_positions(const at::Tensor& start, const at::Tensor& weight, const at::Tensor& bias,
                          int64_t length);

// The baseline of FLOATER's authors (rnn_transformer.py): a GRU of several layers, in torch's gate
// order r, z, n, with the time 0.01 k as input and the initial state h0 [depth, ..., width].
// `weights` are w_ih, w_hh, b_ih, b_hh of each layer. Returns [length, ..., width]; row 0 is one
// step after h0.
at::Tensor gru_positions(const at::Tensor& h0, std::span<const at::Tensor> weights, int64_t length);

// One layer of torch.nn.RNN (tanh) or torch.nn.GRU over the input: states h_k = cell(x_k, h_{k-1}).
// x [batch, rows, width], the state before the first row [batch, width], weights w_ih, w_hh, b_ih,
// b_hh in torch's sizes. Returns the states [batch, rows, width].
enum class InputCell { kTanh, kGru };
at::Tensor input_states(InputCell cell, const at::Tensor& x, const at::Tensor& state,
                        std::span<const at::Tensor> weights);

// FLOATER (Liu, Yu, Dhillon and Hsieh 2020, arXiv 2003.09229): p(0) = start [3, layers, width] (the
// vectors added to queries, keys and values of each layer), dp/dt = h(t, p), and row k is p(0.01
// k), by Runge-Kutta's 3/8 rule in 5 steps per position.
//
//   linear       h = W2 [relu(W1 [p; t] + b1); t] + b2 over the width
//   convolution  h = ConvTranspose1d(5)([selu(Conv1d(5)([p; t])); t]) over the width, with layers
//                as channels; both of stride 2 and padding 2; the width is even
//
// `weights` are W1, b1, W2, b2 of either flow. Only first gradients exist. They either go through
// the solver, whose steps are then computed again, or solve the adjoint equation; the two differ by
// the solver's error. Both save the rows and nothing of the steps between them. The authors' solver
// returns some rows one step late in float32; this one does not.
enum class Flow { kLinear, kConvolution };
enum class FlowGradient { kSolver, kAdjoint };
at::Tensor floater_positions(const at::Tensor& start, std::span<const at::Tensor> weights,
                             int64_t length, Flow flow, FlowGradient gradient);

// Position vectors that are added to every layer's queries, keys and values (FLOATER and its
// authors' recurrent baseline).

// Throws Error, naming `method`, if query heads share keys or if heads * head_dim is not the width:
// the position vectors are as wide as the model and are cut into heads.
void check_injectable(const std::string& method, const ModelShape& shape);

// Adds the rows at the positions of queries and keys to q, k and v. rows: [positions, 3, width] for
// positions 0, 1, ... Throws Error for a negative position.
void add_layer_positions(TensorOperands& operands, const Layout& layout, const at::Tensor& rows);

// The number of rows that add_layer_positions() needs.
int64_t injected_rows(const Layout& layout);

}  // namespace sextant
