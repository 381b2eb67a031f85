// recursive: each position's vector is computed from the one before.
//
//   tanh   p_{k+1} = tanh(W p_k + b) from a trained p_0, added to the input.
//   gru    the baseline of FLOATER's authors (rnn_transformer.py): a GRU of two layers with the
//          time 0.01 k as input. Its outputs are added to queries, keys and values of every layer;
//          the first position is one step after the trained start.
//
// Both continue past the training length. The computation is sequential: one step per position,
// whatever the batch.
#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/select.h>
#include <ATen/ops/slice.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/layer_positions.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/recurrences.h"

namespace sextant {
namespace {

using Init = ParameterSpec::Init;

class TanhRecurrence final : public Method {
 public:
  explicit TanhRecurrence(int64_t width) : width_(width) {}

  bool relative() const override { return false; }
  std::vector<ParameterSpec> parameters() const override {
    const double std = 1 / std::sqrt(static_cast<double>(width_));
    return {{.name = "p0", .sizes = {width_}, .init = Init::kNormal, .init_high = 1},
            {.name = "W",
             .sizes = {width_, width_},
             .init = Init::kNormal,
             .init_high = std,
             .weight_decay = true},
            {.name = "b", .sizes = {width_}}};
  }

  at::Tensor embed(const at::Tensor& x, const Layout& layout,
                   Parameters parameters) const override {
    const at::Tensor rows =
        tanh_positions(parameters[0], parameters[1], parameters[2], injected_rows(layout));
    return x + rows.index_select(0, query_positions(layout));
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
      return ParameterSpec{.name = name,
                           .sizes = std::move(sizes),
                           .init = Init::kUniform,
                           .init_low = -bound,
                           .init_high = bound};
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

std::unique_ptr<Method> make_recursive(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("recursive", json);
  if (options.choice("cell", {"tanh", "gru"}) == 0)
    return std::make_unique<TanhRecurrence>(shape.width);
  check_injectable("recursive", shape);
  return std::make_unique<GruRecurrence>(shape.layers, shape.width);
}

}  // namespace

MethodInfo recursive_method() {
  return {.name = "recursive",
          .summary = "Each position from the one before: a plain recurrence or a GRU",
          .formula = "tanh: p[k+1] = tanh(W p[k] + b); gru: p[k] = GRU(0.01 k, p[k-1])",
          .defaults = R"({"cell": "tanh"})",
          .make = make_recursive};
}

}  // namespace sextant
