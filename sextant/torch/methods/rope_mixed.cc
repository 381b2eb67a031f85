// rope-mixed: rotary positions on a plane, each pair with its own trained direction.
//
// Heo, Park, Han and Yun 2024 (RoPE for Vision Transformer, arXiv 2403.13298, "RoPE-Mixed"; code
// naver-ai/rope-vit): pair f of head h is rotated by x fx[h, f] + y fy[h, f], with fx and fy
// trained, per layer. Pairs are interleaved. Each row has two positions:
// Layout::query_rotary_positions with axes x and y; without rotary positions both equal the row's
// position.
//
// freqs [2, layers, heads * head_dim / 2]. As in the code, it starts with magnitudes base^(-4i/D),
// each for two pairs at right angles. The code draws a random orientation for each head; here
// orientations are spread evenly over a half circle. The fixed variant, RoPE-Axial, is rope with
// axes "restart".
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/position/spectrum.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/rotary_options.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/checkpointed.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

constexpr int64_t kRowsAtOnce = 1024;

class RopeMixed final : public Method {
 public:
  RopeMixed(const ModelShape& shape, double base)
      : shape_(shape),
        base_(base),
        pairs_(rotary({.dim = shape.head_dim, .pairing = Pairing::kInterleaved})) {}

  bool reads_rotary_positions() const override { return true; }
  bool changes_keys() const override { return true; }

  std::vector<ParameterSpec> parameters() const override {
    const int64_t pairs = shape_.head_dim / 2;
    return {{.name = "freqs",
             .sizes = {2, shape_.layers, shape_.heads * pairs},
             .initial = start().expand({2, shape_.layers, shape_.heads * pairs}).contiguous()}};
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    if (operands.k.size(1) != shape_.heads)
      fail(
          "rope-mixed: key heads: expected as many as query heads, as each has its own directions, "
          "but got " +
          std::to_string(operands.k.size(1)));
    const at::Tensor freqs = parameters[0].select(1, layer).view({2, shape_.heads, 1, -1});
    const auto placed = [&](const at::Tensor& x, const at::Tensor& rotary_positions) {
      return in_blocks(x, on_device_of(x, rotary_positions), freqs);
    };
    operands.q = placed(operands.q, query_rotary_positions(layout, 2));
    operands.k = placed(operands.k, key_rotary_positions(layout, 2));
  }

 private:
  at::Tensor start() const {
    const int64_t half = shape_.head_dim / 4;
    std::vector<double> values;
    for (const double shift : {0.0, -0.5})  // cos for x, sin for y
      for (int64_t h = 0; h < shape_.heads; ++h)
        for (int64_t f = 0; f < 2 * half; ++f) {
          const double size =
              std::pow(base_, -static_cast<double>(f % half) / static_cast<double>(half));
          const double turns = static_cast<double>(h) / static_cast<double>(shape_.heads) +
                               (f < half ? 0.0 : 0.5) + shift;
          values.push_back(size * std::cos(std::numbers::pi * turns));
        }
    return tensor_of(values, {2, 1, shape_.heads * 2 * half});
  }

  // Rotates x by rotary positions [1 or batch, 2, rows] and freqs [2, heads, 1, pairs].
  static at::Tensor at_positions(const at::Tensor& x, const at::Tensor& rotary_positions,
                                 const at::Tensor& freqs, const Spectrum& pairs) {
    const auto along = [&](int64_t axis) {
      return rotary_positions.select(1, axis).unsqueeze(1).unsqueeze(3).to(at::kDouble) *
             freqs[axis].to(at::kDouble);
    };
    const at::Tensor angles = along(0) + along(1);
    return rotated(x, at::cos(angles).to(x.options()), at::sin(angles).to(x.options()), pairs);
  }

  // Calls at_positions() for blocks of rows and recomputes it for gradients: the angles of each
  // head, in float64, and their saved tensors are several times as large as x.
  at::Tensor in_blocks(const at::Tensor& x, const at::Tensor& rotary_positions,
                       const at::Tensor& freqs) const {
    if (x.size(2) <= kRowsAtOnce) return at_positions(x, rotary_positions, freqs, pairs_);
    std::vector<at::Tensor> blocks;
    int64_t first = 0;
    for (const at::Tensor& rows : x.split(kRowsAtOnce, 2)) {
      const auto turn = [at = rotary_positions.narrow(2, first, rows.size(2)),
                         pairs = pairs_](const std::vector<at::Tensor>& inputs) {
        return std::vector<at::Tensor>{at_positions(inputs[0], at, inputs[1], pairs)};
      };
      blocks.push_back(checkpointed(turn, {rows, freqs})[0]);
      first += rows.size(2);
    }
    return at::cat(blocks, 2);
  }

  ModelShape shape_;
  double base_;
  Spectrum pairs_;
};

std::unique_ptr<Method> make_rope_mixed(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("rope-mixed", json);
  if (shape.head_dim % 4 != 0)
    fail("rope-mixed: head_dim: expected a multiple of 4, but got " +
         std::to_string(shape.head_dim));
  return std::make_unique<RopeMixed>(shape, options.number("base", 1e-3, 1e30));
}

}  // namespace

MethodInfo rope_mixed_method() {
  return {.name = "rope-mixed",
          .summary = "Rotary positions on a plane with trained directions (Heo et al. 2024)",
          .formula = "pair f of head h at (x, y) is rotated by x fx[h, f] + y fy[h, f]",
          .defaults = R"({"base": 10.0})",
          .make = make_rope_mixed,
          // Trained frequencies: angles are products of doubles, and the largest shift is 2^31.
          .tests = {.rounding = 1e-6, .shares_key_heads = false, .head_dim = 8}};
}

}  // namespace sextant
