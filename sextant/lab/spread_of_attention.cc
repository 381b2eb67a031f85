#include "sextant/lab/spread_of_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/log.h>

#include <algorithm>
#include <utility>

#include "sextant/lab/batches.h"
#include "sextant/torch/methods/over.h"

namespace sextant::lab {
namespace {

constexpr size_t kTexts = 2;

struct Sum {
  double entropy = 0, span = 0;
  int64_t count = 0;
};

// Adds up what each layer attends to.
class Watched final : public Over {
 public:
  Watched(std::unique_ptr<Method> of, int64_t queries, std::shared_ptr<std::vector<Sum>> layers)
      : Over(std::move(of)), queries_(queries), layers_(std::move(layers)) {}

  void place(Operands& operands, const Placement& placement, int64_t layer,
             Parameters parameters) const override {
    const int64_t first = placement.queries - queries_;
    Placement last = placement;
    last.first_query += first;
    last.queries = queries_;
    Operands watched =
        plain_operands(operands.q.narrow(2, first, queries_), operands.k, operands.v, last);
    Over::place(operands, placement, layer, parameters);
    Over::place(watched, last, layer, parameters);
    // Attention over the identity gives its weights.
    watched.on_value = {};
    watched.v =
        at::eye(placement.keys, operands.v.options())
            .expand({operands.v.size(0), operands.v.size(1), placement.keys, placement.keys});
    const at::Tensor p = std::get<0>(attend(watched)).to(at::kDouble);
    const at::Tensor from = at::arange(first, placement.queries, at::kDouble).unsqueeze(1);
    const at::Tensor distance = from - at::arange(0, placement.keys, at::kDouble).unsqueeze(0);
    Sum& sum = layers_->at(static_cast<size_t>(layer));
    sum.entropy -= (p * at::log(p.clamp_min(1e-30))).sum(3).mean().item<double>();
    sum.span += (p * distance).sum(3).mean().item<double>();
    ++sum.count;
  }

 private:
  int64_t queries_;
  std::shared_ptr<std::vector<Sum>> layers_;
};

}  // namespace

std::vector<AttentionAt> spread_of_attention(Decoder& decoder, std::unique_ptr<Method> method,
                                             std::span<const std::string_view> blocks,
                                             const TestOptions& options, int64_t train_length) {
  const at::NoGradGuard no_gradients;
  const auto layers = std::make_shared<std::vector<Sum>>();
  decoder.replace_method(
      std::make_unique<Watched>(std::move(method), std::max<int64_t>(1, train_length / 2), layers));
  std::vector<AttentionAt> all;
  for (const int64_t length : options.lengths) {
    layers->assign(static_cast<size_t>(decoder.options().layers), {});
    for (const std::string_view block : blocks.first(std::min(kTexts, blocks.size()))) {
      // A block's last byte is predicted and not read.
      const auto read = static_cast<size_t>(length);
      decoder.logits(tokens_of(block.substr(block.size() - 1 - read, read)).unsqueeze(0));
    }
    for (size_t layer = 0; layer < layers->size(); ++layer) {
      const Sum& sum = layers->at(layer);
      const auto count = static_cast<double>(sum.count);
      all.push_back({.length = length,
                     .layer = static_cast<int64_t>(layer),
                     .entropy = sum.entropy / count,
                     .span = sum.span / count});
    }
  }
  return all;
}

}  // namespace sextant::lab
