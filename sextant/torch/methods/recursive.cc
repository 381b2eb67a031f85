// recursive: each position's vector is computed from the one before.
//
//   tanh   p_{k+1} = tanh(W p_k + b) from a trained p_0, added to the input.
//   gru    the baseline of FLOATER's authors (rnn_transformer.py): a GRU of two layers with the
//          time 0.01 k as input. Its outputs are added to queries, keys and values of every layer;
//          the first position is one step after the trained start.
//
// Both continue past the training length. The computation is sequential: one step per position,
// whatever the batch.
//
// These are recurrences over positions. `over` "input" is the form in which reviews introduce the
// method, a layer of RNN between the input and the transformer, which learns positions as far as it
// counts steps: x'_k = RNN(x_k, x'_{k-1}) with x'_{-1} = 0, and the transformer's input is x'. The
// cell is torch's RNN (tanh) or GRU, with its parameters' names. It runs from left to right whether
// attention is causal or not, and starts anew with each packed sequence. As x' is its own state, a
// sequence continues from the last row of x' (Layout::input_before), from a cache or a memory.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/select.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/recurrences.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

class TanhRecurrence final : public Method {
 public:
  explicit TanhRecurrence(int64_t width) : width_(width) {}

  bool relative() const override { return false; }
  int64_t added_channels() const override { return width_; }
  std::vector<ParameterSpec> parameters() const override {
    const double std = 1 / std::sqrt(static_cast<double>(width_));
    return {ParameterSpec::normal("p0", {width_}, 1),
            ParameterSpec::normal("W", {width_, width_}, std, true),
            {.name = "b", .sizes = {width_}}};
  }

  at::Tensor embed(const at::Tensor& x, const Layout& layout,
                   Parameters parameters) const override {
    const at::Tensor rows =
        tanh_positions(parameters[0], parameters[1], parameters[2], injected_rows(layout));
    return x + rows.index_select(0, on_device_of(x, query_positions(layout)));
  }

 private:
  int64_t width_;
};

class GruRecurrence final : public Method {
 public:
  GruRecurrence(int64_t layers, int64_t width) : layers_(layers), width_(width) {}

  bool relative() const override { return false; }
  bool changes_keys() const override { return true; }
  std::vector<ParameterSpec> parameters() const override {
    const double bound = 1 / std::sqrt(static_cast<double>(width_));
    const auto uniform = [&](const std::string& name, std::vector<int64_t> sizes) {
      return ParameterSpec::uniform(name, std::move(sizes), bound);
    };
    std::vector<ParameterSpec> specs = {uniform("p0", {kDepth, 3, layers_, width_})};
    for (int64_t layer = 0; layer < kDepth; ++layer) {
      const std::string end = "_l" + std::to_string(layer);
      specs.push_back(uniform("weight_ih" + end, {3 * width_, layer == 0 ? 1 : width_}));
      specs.push_back(uniform("weight_hh" + end, {3 * width_, width_}));
      specs.push_back(uniform("bias_ih" + end, {3 * width_}));
      specs.push_back(uniform("bias_hh" + end, {3 * width_}));
    }
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const at::Tensor start = parameters[0].select(2, layer);
    add_layer_positions(operands, layout,
                        gru_positions(start, parameters.subspan(1), injected_rows(layout)));
  }

 private:
  static constexpr int64_t kDepth = 2;
  int64_t layers_, width_;
};

// x' = RNN(x): one layer of torch's RNN or GRU over the input.
class InputRecurrence final : public Method {
 public:
  InputRecurrence(InputCell cell, int64_t width) : cell_(cell), width_(width) {}

  bool recurs_over_input() const override { return true; }
  std::vector<ParameterSpec> parameters() const override {
    const double bound = 1 / std::sqrt(static_cast<double>(width_));
    const int64_t rows = (cell_ == InputCell::kGru ? 3 : 1) * width_;
    const auto uniform = [&](const char* name, std::vector<int64_t> sizes) {
      const bool matrix = sizes.size() == 2;
      return ParameterSpec::uniform(name, std::move(sizes), bound, matrix);
    };
    return {uniform("weight_ih_l0", {rows, width_}), uniform("weight_hh_l0", {rows, width_}),
            uniform("bias_ih_l0", {rows}), uniform("bias_hh_l0", {rows})};
  }

  at::Tensor embed(const at::Tensor& x, const Layout& layout,
                   Parameters parameters) const override {
    const std::vector<Frame> all = sequences(layout);
    check_input_before(layout, all);
    std::vector<at::Tensor> parts;
    for (size_t n = 0; n < all.size(); ++n) {
      const Frame& sequence = all[n];
      if (sequence.queries == 0) continue;
      const at::Tensor state =
          sequence.query_position == sequence.key_position
              ? at::zeros({x.size(0), width_}, x.options())
              : layout.input_before.select(1, static_cast<int64_t>(n)).to(x.options());
      parts.push_back(input_states(cell_, x.narrow(1, sequence.query_row, sequence.queries), state,
                                   parameters));
    }
    if (parts.empty()) return x;
    return parts.size() == 1 ? parts.front() : at::cat(parts, 1);
  }

 private:
  void check_input_before(const Layout& layout, const std::vector<Frame>& all) const {
    const at::Tensor& before = layout.input_before;
    if (before.defined()) {
      const std::vector<int64_t> sizes = {layout.batch, static_cast<int64_t>(all.size()), width_};
      if (!at::isFloatingType(before.scalar_type()))
        fail(std::string("recursive: input_before: expected floating-point numbers, but got ") +
             at::toString(before.scalar_type()));
      if (before.sizes() != at::IntArrayRef(sizes))
        fail("recursive: input_before: expected [" + std::to_string(sizes[0]) + ", " +
             std::to_string(sizes[1]) + ", " + std::to_string(sizes[2]) +
             "] (batch, sequences, width), but got another shape");
      return;
    }
    for (const Frame& sequence : all)
      if (sequence.queries > 0 && sequence.query_position != sequence.key_position)
        fail(
            "recursive: input_before: expected the result at the position before the first query, "
            "as the recurrence over the input begins at position " +
            std::to_string(sequence.key_position) + " and the queries at " +
            std::to_string(sequence.query_position) + ", but got none");
  }

  InputCell cell_;
  int64_t width_;
};

std::unique_ptr<Method> make_recursive(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("recursive", json);
  const bool gru = options.choice("cell", {"tanh", "gru"}) == 1;
  if (options.choice("over", {"positions", "input"}) == 1)
    return std::make_unique<InputRecurrence>(gru ? InputCell::kGru : InputCell::kTanh, shape.width);
  if (!gru) return std::make_unique<TanhRecurrence>(shape.width);
  check_injectable("recursive", shape);
  return std::make_unique<GruRecurrence>(shape.layers, shape.width);
}

}  // namespace

MethodInfo recursive_method() {
  return {.name = "recursive",
          .summary = "Each position from the one before: a plain recurrence or a GRU",
          .formula =
              "tanh: p[k+1] = tanh(W p[k] + b); gru: p[k] = GRU(0.01 k, p[k-1]); "
              "over the input: x'[k] = RNN(x[k], x'[k-1])",
          .defaults = R"({"cell": "tanh", "over": "positions"})",
          .make = make_recursive};
}

}  // namespace sextant
