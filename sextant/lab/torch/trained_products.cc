#include "sextant/lab/torch/trained_products.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/lab/torch/probe_encoding.h"
#include "sextant/position/position_products.h"

namespace sextant::lab {
namespace {

constexpr int64_t kDrawn = 32;  // positions on a side of a drawn product

std::span<const double> values(const at::Tensor& x) {
  return {x.data_ptr<double>(), static_cast<size_t>(x.numel())};
}

at::Tensor parameter(const Decoder& decoder, const std::string& name) {
  const std::vector<NamedParameter>& all = decoder.parameters();
  const auto found = std::ranges::find(all, name, &NamedParameter::name);
  if (found == all.end()) fail("decoder: there is no parameter " + name);
  return found->value.detach().cpu().to(at::kDouble);
}

// The vectors [positions, width] as a layer's norm passes them on, but for its division.
at::Tensor normed(const at::Tensor& vectors, const Decoder& decoder, int64_t layer) {
  const at::Tensor gain = parameter(decoder, fmt::format("layers.{}.attention.norm", layer));
  const bool centered = decoder.options().norm == Norm::kLayerNorm;
  return (centered ? vectors - vectors.mean(1, /*keepdim=*/true) : vectors) * gain;
}

// The products of each head of a layer, [positions, positions].
std::vector<std::vector<double>> products_of_layer(const at::Tensor& vectors,
                                                   const Decoder& decoder, int64_t layer) {
  const DecoderOptions& options = decoder.options();
  const int64_t size = options.head_dim();
  const at::Tensor rows = normed(vectors, decoder, layer).contiguous();
  const at::Tensor in = parameter(decoder, fmt::format("layers.{}.attention.in", layer));
  const auto projection = [&](int64_t first) { return in.narrow(0, first, size).t().contiguous(); };
  std::vector<std::vector<double>> products;
  for (int64_t head = 0; head < options.heads; ++head) {
    const int64_t key_head = head / (options.heads / options.key_heads);
    const at::Tensor query = projection(head * size);
    const at::Tensor key = projection((options.heads + key_head) * size);
    products.push_back(position_products(values(rows), rows.size(0),
                                         {.query = values(query), .key = values(key)}));
  }
  return products;
}

// The product at every `step`th row and column, in standard deviations of the whole.
std::vector<std::vector<double>> sampled(const std::vector<double>& product, int64_t count,
                                         int64_t step) {
  const std::vector<double> values = standardised(product);
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; i < count; i += step) {
    rows.emplace_back();
    for (int64_t j = 0; j < count; j += step) {
      rows.back().push_back(std::round(values[static_cast<size_t>(i * count + j)] * 1e2) / 1e2);
    }
  }
  return rows;
}

// Appends a row of tiles, one per head, with a gap of NaN between tiles.
void append(const std::vector<std::vector<std::vector<double>>>& tiles,
            std::vector<std::vector<double>>& grid) {
  constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
  const size_t rows = tiles.front().size();
  if (!grid.empty()) grid.emplace_back(grid.front().size(), kGap);
  for (size_t row = 0; row < rows; ++row) {
    grid.emplace_back();
    for (const auto& tile : tiles) {
      if (!grid.back().empty()) grid.back().push_back(kGap);
      grid.back().insert(grid.back().end(), tile[row].begin(), tile[row].end());
    }
  }
}

}  // namespace

PositionProducts trained_products(const Decoder& decoder, const Decoder& untrained,
                                  const Method& method, const ModelShape& shape,
                                  Pictures* pictures) {
  const at::NoGradGuard no_gradients;
  const int64_t count = shape.train_length;
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& one : decoder.method_parameters())
    parameters.push_back(one.detach().cpu().to(at::kDouble));
  std::vector<double> added =
      added_by(method, shape, {.queries = count, .keys = count}, parameters);
  if (added.empty()) return {};
  const at::Tensor vectors = at::from_blob(added.data(), {count, shape.width}, at::kDouble);

  const PairsOfPositions pairs =
      decoder.options().causal ? PairsOfPositions::kPast : PairsOfPositions::kAll;
  const auto share = [&](const std::vector<double>& product) {
    return variance_explained_by_distance(product, count, pairs);
  };
  PositionProducts found{.plain = share(position_products(added, count))};
  const int64_t step = (count + kDrawn - 1) / kDrawn;
  for (int64_t layer = 0; layer < decoder.options().layers; ++layer) {
    const auto trained = products_of_layer(vectors, decoder, layer);
    const auto random = products_of_layer(vectors, untrained, layer);
    std::vector<std::vector<std::vector<double>>> tiles;
    for (size_t head = 0; head < trained.size(); ++head) {
      found.heads.push_back({.layer = layer,
                             .head = static_cast<int64_t>(head),
                             .trained = share(trained[head]),
                             .untrained = share(random[head])});
      if (pictures != nullptr) tiles.push_back(sampled(trained[head], count, step));
    }
    if (pictures != nullptr) append(tiles, pictures->products);
  }
  if (pictures != nullptr) pictures->product_step = step;
  return found;
}

}  // namespace sextant::lab
