#include "sextant/lab/torch/attention_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/log.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "sextant/lab/torch/batches.h"
#include "sextant/torch/methods/shared/method_wrapper.h"

namespace sextant::lab {
namespace {

constexpr size_t kTexts = 2;
constexpr int64_t kCells = 64;

struct Sum {
  double entropy = 0, span = 0;
  std::vector<double> at_distance = {};
  int64_t count = 0;
};

struct Seen {
  std::vector<Sum> layers;
  bool draws = false;  // collect the map from this sequence
  at::Tensor map;      // [cells, cells], summed over layers
};

// Bin 0 is distance 0; bin n is distances 2^(n - 1) to 2^n - 1.
size_t bin_of(int64_t distance) { return std::bit_width(static_cast<uint64_t>(distance)); }

// Adds the sum of each bin, averaged over queries. p: [queries, keys], with the first query at
// position `first`; distances count in both directions.
void add_bins(const at::Tensor& p, int64_t first, std::vector<double>& bins) {
  const at::Tensor rows = p.contiguous();
  const int64_t queries = rows.size(0), keys = rows.size(1);
  const int64_t farthest = std::max(first + queries - 1, keys - 1 - first);
  bins.resize(std::max(bins.size(), bin_of(farthest) + 1), 0);
  for (int64_t q = 0; q < queries; ++q) {
    const double* const row = rows.data_ptr<double>() + q * keys;
    for (int64_t k = 0; k < keys; ++k)
      bins[bin_of(std::abs(first + q - k))] += row[k] / static_cast<double>(queries);
  }
}

double rounded(double value) { return std::round(value * 1e5) / 1e5; }

// The attention weights [batch, heads, queries, keys], as the output of attention with the identity
// as values.
at::Tensor weights_of(TensorOperands operands) {
  const int64_t keys = operands.k.size(2);
  operands.on_value = {};
  operands.v = at::eye(keys, operands.v.options())
                   .expand({operands.v.size(0), operands.v.size(1), keys, keys});
  return std::get<0>(attend(operands));
}

// A wrapper that sums the statistics of each layer's attention.
class Watched final : public MethodWrapper {
 public:
  Watched(std::unique_ptr<Method> of, int64_t queries, std::shared_ptr<Seen> watch)
      : MethodWrapper(std::move(of)), queries_(queries), watch_(std::move(watch)) {}

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const int64_t first = (layout.queries - queries_) / (layout.causal ? 1 : 2);
    Layout last = layout;
    last.first_query += first;
    last.queries = queries_;
    TensorOperands watched =
        plain_operands(operands.q.narrow(2, first, queries_), operands.k, operands.v, last);
    MethodWrapper::apply(operands, layout, layer, parameters);
    MethodWrapper::apply(watched, last, layer, parameters);
    const at::Tensor p = weights_of(watched).to(at::kDouble);
    const at::Tensor from = at::arange(first, first + queries_, at::kDouble).unsqueeze(1);
    const at::Tensor distance = from - at::arange(0, layout.keys, at::kDouble).unsqueeze(0);
    Sum& sum = watch_->layers.at(static_cast<size_t>(layer));
    sum.entropy -= (p * at::log(p.clamp_min(1e-30))).sum(3).mean().item<double>();
    sum.span += (p * distance.abs()).sum(3).mean().item<double>();
    add_bins(p.flatten(0, 1).mean(0), first, sum.at_distance);
    ++sum.count;
    if (watch_->draws) add_to_map(weights_of(operands));
  }

 private:
  void add_to_map(const at::Tensor& p) const {
    const int64_t cell = p.size(2) / kCells;
    const at::Tensor pooled =
        p.flatten(0, 1).mean(0).view({kCells, cell, kCells, cell}).sum(3).mean(1).to(at::kDouble);
    watch_->map = watch_->map.defined() ? watch_->map + pooled : pooled;
  }

  int64_t queries_;
  std::shared_ptr<Seen> watch_;
};

std::vector<std::vector<double>> rows_of(const at::Tensor& map, double divisor, bool causal) {
  const at::Tensor values = map.contiguous();
  std::vector<std::vector<double>> rows;
  for (int64_t row = 0; row < values.size(0); ++row) {
    const double* const first = values.data_ptr<double>() + row * values.size(1);
    rows.emplace_back();
    for (int64_t column = 0; column < (causal ? row + 1 : values.size(1)); ++column)
      rows.back().push_back(rounded(first[column] / divisor));
  }
  return rows;
}

}  // namespace

std::vector<AttentionAt> attention_entropy(Decoder& decoder, std::unique_ptr<Method> method,
                                           std::span<const std::string_view> blocks,
                                           const TestOptions& options, int64_t train_length,
                                           Pictures* pictures) {
  const at::NoGradGuard no_gradients;
  const auto watch = std::make_shared<Seen>();
  decoder.replace_method(
      std::make_unique<Watched>(std::move(method), std::max<int64_t>(1, train_length / 2), watch));
  std::vector<AttentionAt> all;
  for (const int64_t length : options.lengths) {
    watch->layers.assign(static_cast<size_t>(decoder.options().layers), {});
    watch->draws = pictures != nullptr && length == options.longest() && length % kCells == 0;
    for (const std::string_view block : blocks.first(std::min(kTexts, blocks.size()))) {
      // A block's last byte is only a target.
      const auto read = static_cast<size_t>(length);
      const size_t before = (block.size() - 1 - read) / (decoder.options().causal ? 1 : 2);
      decoder.logits(tokens_of(block.substr(before, read)).unsqueeze(0));
      watch->draws = false;
    }
    for (size_t layer = 0; layer < watch->layers.size(); ++layer) {
      Sum& sum = watch->layers.at(layer);
      const auto count = static_cast<double>(sum.count);
      for (double& share : sum.at_distance) share = rounded(share / count);
      all.push_back({.length = length,
                     .layer = static_cast<int64_t>(layer),
                     .entropy = sum.entropy / count,
                     .span = sum.span / count,
                     .at_distance = sum.at_distance});
    }
  }
  if (watch->map.defined()) {
    pictures->cell = options.longest() / kCells;
    pictures->attention = rows_of(watch->map, static_cast<double>(decoder.options().layers),
                                  decoder.options().causal);
  }
  return all;
}

}  // namespace sextant::lab
