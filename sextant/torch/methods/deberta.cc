// deberta: disentangled attention; content meets relative position in both directions.
//
// He, Liu, Gao and Chen 2020 (arXiv 2006.03654), v3: 2021 (arXiv 2111.09543):
//
//   s_ij = ( q_i.k_j + q_i.Kr[row(i - j)] + k_j.Qr[row(i - j)] ) / sqrt(d (1 + terms))
//
// with Kr = P W_kr, Qr = P W_qr, P [rows, width] one table for all layers, W_kr and W_qr one pair
// for each layer.
//
//   version 1   rows clip(i - j + k, 0, 2k - 1), k = max_positions; W_kr has no bias
//   version 2   logarithmic buckets (sextant/position/buckets.h), both W with bias, P after a
//               LayerNorm
//   version 3   version 2 with share_att_key: W_kr, W_qr are the layer's own key and query
//               projections, which ParameterSpec::same_as says; heads that share a key head share
//               its W_kr
//
// The paper has row(j - i) in the last term. All released code has row(i - j) in both, so
// checkpoints do too; flavour "paper" is for new models and version 1. "microsoft" clips distances
// to max_positions - 1 before bucketing: keys that far to the right get another row than in
// "hugging-face". Distances beyond the table share its last row or bucket. In official code queries
// have positions 0, 1, ... even if there are fewer queries than keys: set first_query = 0 to match
// it. Published models are bidirectional.
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

#include "sextant/position/row_map.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

enum class DebertaFlavour { kHuggingFace, kMicrosoft, kPaper };

struct DebertaOptions {
  int64_t version = 2;
  int64_t buckets = 0;  // 0: one row per distance, clipped
  int64_t max_positions = 512;
  bool c2p = true, p2c = true;
  bool norm = true;
  double norm_eps = 1e-7;
  DebertaFlavour flavour = DebertaFlavour::kHuggingFace;
};

class Deberta final : public Method {
 public:
  Deberta(const ModelShape& shape, const DebertaOptions& options,
          std::optional<DebertaBuckets> buckets)
      : shape_(shape), options_(options), buckets_(std::move(buckets)), width_(shape.width) {}

  std::vector<ParameterSpec> parameters() const override {
    using Init = ParameterSpec::Init;
    std::vector<ParameterSpec> specs = {
        ParameterSpec::normal("rel_embeddings.weight", {2 * span(), width_}, 0.02)};
    if (options_.norm) {
      specs.push_back({.name = "LayerNorm.weight", .sizes = {width_}, .init = Init::kOnes});
      specs.push_back({.name = "LayerNorm.bias", .sizes = {width_}});
    }
    for (int64_t n = 0; n < shape_.layers; ++n) {
      const std::string layer =
          shape_.layers > 1 ? "layer." + std::to_string(n) + ".attention.self." : "";
      const auto projection = [&](const std::string& name, LayerProjection::Of of, bool bias) {
        const bool shared = options_.version == 3;
        const bool of_keys = shared && of == LayerProjection::Of::kKey;
        const int64_t out = (of_keys ? shape_.key_heads : shape_.heads) * shape_.head_dim;
        const auto same_as = [&](bool of_bias) {
          return shared ? std::optional(LayerProjection{.of = of, .layer = n, .bias = of_bias})
                        : std::nullopt;
        };
        specs.push_back({.name = layer + name + ".weight",
                         .sizes = {out, width_},
                         .init = Init::kNormal,
                         .init_high = 0.02,
                         .weight_decay = true,
                         .same_as = same_as(false)});
        if (bias)
          specs.push_back(
              {.name = layer + name + ".bias", .sizes = {out}, .same_as = same_as(true)});
      };
      if (options_.c2p) projection(names().key, LayerProjection::Of::kKey, options_.version > 1);
      if (options_.p2c) projection(names().query, LayerProjection::Of::kQuery, true);
    }
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const int64_t terms = (options_.c2p ? 1 : 0) + (options_.p2c ? 1 : 0);
    use_scale(operands, 1 / std::sqrt(static_cast<double>(shape_.head_dim * (1 + terms))));
    at::Tensor table = parameters[0];
    if (options_.norm)
      table = at::layer_norm(table, {width_}, parameters[1], parameters[2], options_.norm_eps);
    Parameters own = of_this_layer(parameters, layer);
    const std::vector<int32_t> rows = row_of(layout.diagonals());
    if (options_.c2p) {
      const bool bias = options_.version > 1;
      operands.on_query = {.rows = heads(table, own[0], bias ? own[1] : at::Tensor()),
                           .row_at = tensor_of(rows)};
      own = own.subspan(bias ? 2 : 1);
    }
    if (options_.p2c) {
      const bool paper = options_.flavour == DebertaFlavour::kPaper;
      operands.on_key = {.rows = heads(table, own[0], own[1]),
                         .row_at = tensor_of(paper ? reversed(layout.diagonals()) : rows)};
    }
  }

 private:
  struct Names {
    const char *key, *query;
  };
  Names names() const {
    if (options_.version == 1) return {"pos_proj", "pos_q_proj"};
    if (options_.version == 2) return {"pos_key_proj", "pos_query_proj"};
    return {"key_proj", "query_proj"};
  }

  // Half of the number of rows.
  int64_t span() const { return options_.buckets > 0 ? options_.buckets : options_.max_positions; }

  Parameters of_this_layer(Parameters all, int64_t layer) const {
    const size_t shared = options_.norm ? 3 : 1;
    const size_t each = (all.size() - shared) / static_cast<size_t>(shape_.layers);
    of_layer(all.last(static_cast<size_t>(shape_.layers)), layer);  // throws for an invalid layer
    return all.subspan(shared + static_cast<size_t>(layer) * each, each);
  }

  // [rows, width] -> [heads, rows, head_dim]; rows of a key head are repeated for the heads that
  // share it.
  at::Tensor heads(const at::Tensor& table, const at::Tensor& weight,
                   const at::Tensor& bias) const {
    const at::Tensor projected =
        bias.defined() ? at::linear(table, weight, bias) : at::linear(table, weight);
    const at::Tensor own = projected.view({2 * span(), -1, shape_.head_dim}).transpose(0, 1);
    const int64_t group = shape_.heads / own.size(0);
    return group > 1 ? own.repeat_interleave(group, 0) : own;
  }

  std::vector<int32_t> row_of(const Diagonals& diagonals) const {
    if (!buckets_)
      return row_map(
          diagonals,
          {.rows = 2 * span(), .zero_distance = span(), .order = RowOrder::kQueryMinusKey});
    return row_map(diagonals, *buckets_);
  }

  std::vector<int32_t> reversed(const Diagonals& diagonals) const {
    return row_map(
        diagonals,
        {.rows = 2 * span(), .zero_distance = span(), .order = RowOrder::kKeyMinusQuery});
  }

  ModelShape shape_;
  DebertaOptions options_;
  std::optional<DebertaBuckets> buckets_;  // none: a row for each distance
  int64_t width_;
};

std::unique_ptr<Method> make_deberta(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("deberta", json);
  constexpr int64_t kMost = 1 << 24;
  const int64_t version = options.integer("version", 1, 3);
  const DebertaOptions deberta = {
      .version = version,
      .buckets = options.integer_or("buckets", version == 1 ? 0 : 256, 0, kMost),
      .max_positions = options.integer("max_positions", 1, kMost),
      .c2p = options.flag("c2p"),
      .p2c = options.flag("p2c"),
      .norm = options.optional_flag("norm").value_or(version > 1),
      .norm_eps = options.number("norm_eps", 0, 1),
      .flavour = static_cast<DebertaFlavour>(
          options.choice("flavour", {"hugging-face", "microsoft", "paper"}))};
  if (deberta.flavour == DebertaFlavour::kPaper && deberta.buckets > 0)
    options.refuse("flavour", "hugging-face or microsoft, as there are buckets");
  if (!deberta.c2p && !deberta.p2c) options.refuse("p2c", "true, as c2p is false");
  std::optional<DebertaBuckets> buckets;
  if (deberta.buckets > 0) {
    using Flavour = DebertaBuckets::Flavour;
    const bool clips = deberta.flavour == DebertaFlavour::kMicrosoft;
    buckets.emplace(
        DebertaBuckets::Options{.buckets = deberta.buckets,
                                .max_positions = deberta.max_positions,
                                .flavour = clips ? Flavour::kMicrosoft : Flavour::kHuggingFace});
  }
  return std::make_unique<Deberta>(shape, deberta, std::move(buckets));
}

}  // namespace

MethodInfo deberta_method() {
  return {.name = "deberta",
          .summary = "Content and relative position disentangled (DeBERTa, He et al. 2020)",
          .formula =
              "s_ij = ( q_i . k_j + q_i . Kr[row] + k_j . Qr[row] ) / sqrt(d (1 + terms)); row = "
              "row(i - j); Kr = P W_kr, Qr = P W_qr",
          .defaults = R"({"version": 2, "buckets": null, "max_positions": 512, "c2p": true,
                          "p2c": true, "norm": null, "norm_eps": 1e-7,
                          "flavour": "hugging-face"})",
          .make = make_deberta};
}

}  // namespace sextant
