// tupe: absolute positions with their own projections, untied from token embeddings.
//
// Ke, He and Liu 2020 (TUPE, arXiv 2006.15595):
//
//   s_ij = ( q_i.k_j + reset(UQ_i.UK_j) ) / sqrt(2d)  [ + reset(b[bucket(j - i)]) ]
//
// UQ = LN(P) U_Q, UK = LN(P) U_K, shared by all layers; the bias b is TUPE-R's ("relative": true),
// with T5's buckets in both directions, and is not scaled. reset frees the first token, [CLS], from
// position: as a query it gives all keys the same value (theta_1), and as a key it gives all other
// queries the same value (theta_2). As in the code, position t has row t + 1 of P, theta_2 is the
// value of position 0 with itself, and b's reset column is one more row of its table. theta_1 (row
// 0 of P, row buckets / 2 of b) adds one constant to a whole row of scores and cancels in softmax:
// it is omitted, and its gradient is exactly 0, as in the code.
//
// Further columns of q and k hold the absolute part, and one or two more hold the reset; with c =
// [CLS]:
//
//   q' = [ q | UQ_i, 0 for c | theta_2 + (b_reset - b[-i])/scale, 0 for c | 1/scale for c, else 0 ]
//   k' = [ k | UK_j, 0 for c | 1 for c, else 0                            | -b[j]                 ]
//
// The table limits positions: a position of max_positions or more is an Error. The authors have no
// causal use.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/position/row_map.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/checkpointed.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

constexpr double kNormEps = 1e-5;

// The order of parameters().
enum Parameter : size_t {
  kPositions,
  kNormWeight,
  kNormBias,
  kQueryWeight,
  kQueryBias,
  kKeyWeight,
  kKeyBias,
  kRelative
};

class Tupe final : public Method {
 public:
  Tupe(const ModelShape& shape, int64_t max_positions, std::optional<T5Buckets> relative)
      : shape_(shape), max_positions_(max_positions), relative_(std::move(relative)) {}

  bool relative() const override { return false; }
  bool changes_keys() const override { return true; }
  std::vector<ParameterSpec> parameters() const override {
    using Init = ParameterSpec::Init;
    const int64_t width = shape_.width, out = shape_.heads * shape_.head_dim;
    const auto normal = [](const std::string& name, std::vector<int64_t> sizes) {
      return ParameterSpec::normal(name, std::move(sizes), 0.02);
    };
    std::vector<ParameterSpec> specs = {
        normal("pos.weight", {max_positions_ + 1, width}),
        {.name = "pos_ln.weight", .sizes = {width}, .init = Init::kOnes},
        {.name = "pos_ln.bias", .sizes = {width}},
        normal("pos_q_linear.weight", {out, width}),
        {.name = "pos_q_linear.bias", .sizes = {out}},
        normal("pos_k_linear.weight", {out, width}),
        {.name = "pos_k_linear.bias", .sizes = {out}}};
    if (relative_)
      specs.push_back(
          normal("relative_attention_bias.weight", {relative_->buckets() + 1, shape_.heads}));
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t, Parameters p) const override {
    if (operands.k.size(1) != shape_.heads)
      fail(
          "tupe: key heads: expected as many as query heads, as each has its own positions, but "
          "got " +
          std::to_string(operands.k.size(1)));
    use_scale(operands, 1 / std::sqrt(2.0 * static_cast<double>(shape_.head_dim)));
    const at::Tensor i = query_positions(layout), j = key_positions(layout);
    const auto like = operands.q.options();
    // 1 for [CLS], 0 for other tokens: [1, 1, rows, 1]
    const auto cls = [&](const at::Tensor& positions) {
      return on_device_of(operands.q, positions.eq(0)).to(like).view({1, 1, -1, 1});
    };
    const at::Tensor cls_i = cls(i), cls_j = cls(j);

    const auto queries = [&](const at::Tensor& at) {
      return projected(p, at, p[kQueryWeight], p[kQueryBias]);
    };
    const auto keys = [&](const at::Tensor& at) {
      return projected(p, at, p[kKeyWeight], p[kKeyBias]);
    };
    const at::Tensor first = at::zeros({1}, at::kLong);
    at::Tensor column = (queries(first) * keys(first)).sum(-1, /*keepdim=*/true);  // theta_2

    std::vector<at::Tensor> q = {operands.q, queries(i) * (1 - cls_i)};
    std::vector<at::Tensor> k = {operands.k, keys(j) * (1 - cls_j)};
    if (relative_) {
      const at::Tensor& table = p[kRelative];
      operands.bias = {.rows = table.transpose(0, 1),
                       .row_at = tensor_of(row_map(layout.diagonals(), *relative_))};
      const at::Tensor reset = table[relative_->buckets()].view({1, -1, 1, 1});
      column = column + (reset - at_distances(table, i)) / operands.scale;
      q.push_back(column * (1 - cls_i));
      k.push_back(cls_j);
      q.push_back(cls_i / operands.scale);
      k.push_back(-at_distances(table, -j));
    } else {
      q.push_back(column * (1 - cls_i));
      k.push_back(cls_j);
    }
    operands.q = beside(q);
    operands.k = beside(k);
  }

 private:
  // LN(P) at positions, projected: [1, heads, positions, head_dim]. It is recomputed for gradients:
  // P at all positions and its normalised form are each as large as q.
  at::Tensor projected(Parameters p, const at::Tensor& positions, const at::Tensor& weight,
                       const at::Tensor& bias) const {
    if (positions.numel() > 0 &&
        (positions.max().item<int64_t>() >= max_positions_ || positions.min().item<int64_t>() < 0))
      fail("tupe: positions: expected 0 to " + std::to_string(max_positions_ - 1) + ", but got " +
           std::to_string(positions.min().item<int64_t>()) + " to " +
           std::to_string(positions.max().item<int64_t>()));
    const auto project = [rows = on_device_of(weight, positions + 1),
                          shape = shape_](const std::vector<at::Tensor>& inputs) {
      const at::Tensor normed = at::layer_norm(inputs[0].index_select(0, rows), {shape.width},
                                               inputs[1], inputs[2], kNormEps);
      return std::vector<at::Tensor>{at::linear(normed, inputs[3], inputs[4])
                                         .view({1, -1, shape.heads, shape.head_dim})
                                         .transpose(1, 2)};
    };
    return checkpointed(project, {p[kPositions], p[kNormWeight], p[kNormBias], weight, bias})[0];
  }

  // b at each distance: [1, heads, distances, 1].
  at::Tensor at_distances(const at::Tensor& table, const at::Tensor& distances) const {
    at::Tensor buckets = at::empty_like(distances);
    for (int64_t n = 0; n < distances.numel(); ++n)
      buckets.data_ptr<int64_t>()[n] = relative_->bucket(distances.data_ptr<int64_t>()[n]);
    return table.index_select(0, on_device_of(table, buckets))
        .transpose(0, 1)
        .unsqueeze(0)
        .unsqueeze(3);
  }

  // Concatenates columns, each expanded to the batch, heads and rows of the first.
  static at::Tensor beside(std::vector<at::Tensor> columns) {
    const at::Tensor first = columns.front();
    for (at::Tensor& x : columns)
      x = x.expand({first.size(0), first.size(1), first.size(2), x.size(3)});
    return at::cat(columns, 3);
  }

  ModelShape shape_;
  int64_t max_positions_;
  std::optional<T5Buckets> relative_;
};

std::unique_ptr<Method> make_tupe(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("tupe", json);
  std::optional<T5Buckets> relative;
  const T5Buckets::Options buckets = {
      .buckets = options.integer("buckets", 4, 1 << 20),
      .max_distance = options.integer("max_distance", 2, (int64_t{1} << 31) - 1)};
  if (options.flag("relative")) relative.emplace(buckets);
  return std::make_unique<Tupe>(shape,
                                options.integer_or("max_positions", shape.train_length, 1, 1 << 24),
                                std::move(relative));
}

}  // namespace

MethodInfo tupe_method() {
  return {.name = "tupe",
          .summary = "Positions untied from words (TUPE-A and TUPE-R, Ke et al. 2020)",
          .formula =
              "s_ij = ( q_i . k_j + reset(UQ_i . UK_j) ) / sqrt(2d) [ + reset(b[bucket(j - i), h]) "
              "]; UQ = LayerNorm(P) U_Q, UK = LayerNorm(P) U_K",
          .defaults = R"({"relative": true, "buckets": 32, "max_distance": 128,
                          "max_positions": null})",
          .make = make_tupe,
          .tests = {.options = R"({"max_positions": 64})", .shares_key_heads = false}};
}

}  // namespace sextant
