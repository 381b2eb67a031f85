// Vectors that a method adds are read from its embedding of zeros. Scores come from attention with
// the identity as values, whose results are its weights.
#include "sextant/lab/torch/probe_encoding.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/models/init.h"
#include "sextant/position/position_products.h"

namespace sextant::lab {
namespace {

constexpr uint64_t kSeed = 1;
constexpr double kDeviation = 0.02;  // of parameters that are drawn in place of zeros

std::vector<double> numbers(const at::Tensor& x) {
  const at::Tensor flat = x.contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

constexpr int64_t kCells = 64;

// Keeps result files short; figures do not show more digits.
double rounded(double value) { return std::round(value * 1e4) / 1e4; }

// 0, 1, ... 63, then in steps of about 1/32 of the distance; the last is length - 1.
std::vector<int64_t> distances_below(int64_t length) {
  std::vector<int64_t> distances;
  for (int64_t d = 0; d < length; d += std::max<int64_t>(1, d / 32)) distances.push_back(d);
  if (distances.back() != length - 1) distances.push_back(length - 1);
  return distances;
}

// -d for each distance but 0, and the distances, in rising order.
std::vector<int64_t> in_both_directions(const std::vector<int64_t>& distances) {
  std::vector<int64_t> both;
  for (size_t n = distances.size(); n-- > 1;) both.push_back(-distances[n]);
  both.insert(both.end(), distances.begin(), distances.end());
  return both;
}

std::vector<at::Tensor> position_parameters(const Decoder& decoder) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& parameter : decoder.method_parameters())
    found.push_back(parameter.detach().cpu().to(at::kDouble));
  return found;
}

double dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t n = 0; n < count; ++n) sum += a[n] * b[n];
  return sum;
}

void add_vectors(Pictures& pictures, const std::vector<double>& input, int64_t width) {
  const int64_t rows = static_cast<int64_t>(input.size()) / width;
  const int64_t channel = (width + kCells - 1) / kCells;
  pictures.step = (rows + kCells - 1) / kCells;
  for (int64_t row = 0; row < rows; row += pictures.step) {
    const double* const here = input.data() + row * width;
    pictures.vectors.emplace_back();
    for (int64_t c = 0; c < width; c += channel)
      pictures.vectors.back().push_back(rounded(here[c]));
    pictures.cosines.emplace_back();
    for (int64_t other = 0; other < rows; other += pictures.step) {
      const double* const there = input.data() + other * width;
      const double lengths = dot(here, here, width) * dot(there, there, width);
      // The cosine with a zero vector, such as that of an untrained position, is undefined.
      pictures.cosines.back().push_back(
          lengths > 0 ? rounded(dot(here, there, width) / std::sqrt(lengths)) : NAN);
    }
  }
}

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
    for (int64_t j = 0; j < count; j += step)
      rows.back().push_back(std::round(values[static_cast<size_t>(i * count + j)] * 1e2) / 1e2);
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

// [queries, width]: the method's output for an input of zeros or, if that is zero, of ones; empty
// if the method leaves the input unchanged. Methods that read token ids get id 0 at every position.
// Parameters are float64.
std::vector<double> added_by(const Method& method, const ModelShape& shape, const Layout& layout,
                             Parameters parameters) {
  Layout applied = layout;
  if (method.reads_token_ids())  // the same id everywhere
    applied.token_ids = at::zeros({layout.batch, layout.queries}, at::kLong);
  for (const double value : {0.0, 1.0}) {
    const at::Tensor x = at::full({1, layout.queries, shape.width}, value, at::kDouble);
    for (const at::Tensor& made :
         {method.embed(x, applied, parameters), method.embed_last(x, applied, parameters)})
      if (!made.equal(x)) return numbers(made);
  }
  return {};
}

// [heads, queries, keys]: the score of each query and key, all of which are the same vector within
// a head. NaN marks a masked key.
// The output of attention with the identity as values is the weights p; the scores are log p + lse.
std::vector<double> scores_by(const Method& method, const ModelShape& shape, const Layout& layout,
                              Parameters parameters) {
  const int64_t heads = shape.heads, key_heads = shape.key_heads, size = shape.head_dim;
  const at::Tensor key = normal_values({1, key_heads, 1, size}, 0, 1, kSeed, "plot");
  const at::Tensor query = key.unsqueeze(2)
                               .expand({1, key_heads, heads / key_heads, 1, size})
                               .reshape({1, heads, 1, size});
  const at::Tensor plain_q = query.expand({1, heads, layout.queries, size});
  const at::Tensor x = key.expand({1, key_heads, layout.keys, size});
  const at::Tensor input = normal_values({1, 1, shape.width}, 0, 1, kSeed, "plot");
  const auto inputs = [&](int64_t rows) { return input.expand({1, rows, -1}); };
  const at::Tensor k = with_key_columns(method, x, inputs(layout.keys), /*layer=*/0, parameters);
  const at::Tensor q =
      with_query_columns(method, plain_q, inputs(layout.queries), /*layer=*/0, parameters);
  TensorOperands operands =
      applied(method, plain_operands(q, k, x, layout), layout, /*layer=*/0, parameters);
  operands.on_value = {};
  operands.v = at::eye(layout.keys, at::kDouble).expand({1, key_heads, layout.keys, layout.keys});
  const auto [weights, lse] = attend(operands);
  return numbers((at::log(weights) + lse.unsqueeze(3)).masked_fill(weights == 0, std::nan("")));
}

}  // namespace

ProbedEncoding probe_encoding(const EncodingRequest& request) {
  const at::NoGradGuard no_gradients;
  const ModelShape shape = {.layers = 1,
                            .heads = request.heads,
                            .key_heads = request.heads,
                            .head_dim = request.head_dim,
                            .width = request.heads * request.head_dim,
                            .train_length = request.length};
  const auto method =
      make_method(request.method, shape, checked_json_object(request.options, "options"));
  std::vector<at::Tensor> parameters;
  for (ParameterSpec spec : method->parameters()) {
    if (request.draws_zeros && spec.init == ParameterSpec::Init::kZeros)
      spec = ParameterSpec{.name = spec.name,
                           .sizes = spec.sizes,
                           .init = ParameterSpec::Init::kNormal,
                           .init_high = kDeviation,
                           .initial = spec.initial};
    parameters.push_back(initial_value(spec, kSeed, "position." + spec.name));
  }
  const Layout layout = {
      .queries = request.length, .keys = request.length, .causal = request.causal};
  return {.input = added_by(*method, shape, layout, parameters),
          .scores = scores_by(*method, shape, layout, parameters),
          .trains = !parameters.empty()};
}

Pictures pictures_of(const Decoder& decoder, const Method& method, const ModelShape& shape,
                     int64_t length) {
  const at::NoGradGuard no_gradients;
  const std::vector<at::Tensor> parameters = position_parameters(decoder);
  Pictures pictures;
  const int64_t shown = std::min(2 * shape.train_length, length);  // tables may end at the longest
  const std::vector<double> input =
      added_by(method, shape, {.queries = shown, .keys = shown}, parameters);
  if (!input.empty()) {
    add_vectors(pictures, input, shape.width);
    return pictures;
  }
  // One query: the last of a sequence, or in both directions the middle one.
  const bool causal = decoder.options().causal;
  const int64_t reach = causal ? length : shown;
  const int64_t keys = causal ? reach : 2 * reach - 1;
  const std::vector<double> scores = scores_by(
      method, shape, {.queries = 1, .keys = keys, .first_query = reach - 1, .causal = causal},
      parameters);  // [heads, 1, keys]
  pictures.distances = distances_below(reach);
  if (!causal) pictures.distances = in_both_directions(pictures.distances);
  for (int64_t head = 0; head < shape.heads; ++head) {
    pictures.scores.emplace_back();
    for (const int64_t distance : pictures.distances) {
      const double score = scores[static_cast<size_t>(head * keys + reach - 1 - distance)];
      pictures.scores.back().push_back(std::isfinite(score) ? rounded(score) : NAN);
    }
  }
  return pictures;
}

PositionProducts trained_products(const Decoder& decoder, const Decoder& untrained,
                                  const Method& method, const ModelShape& shape,
                                  Pictures* pictures) {
  const at::NoGradGuard no_gradients;
  const int64_t count = shape.train_length;
  std::vector<double> added =
      added_by(method, shape, {.queries = count, .keys = count}, position_parameters(decoder));
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
