// The cache of a decoder: the caches of its layers, and that of the inputs of its first layer,
// grow, fork and shrink together.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "sextant/base/error.h"
#include "sextant/models/decoder/decoder.h"
#include "sextant/torch/operators/tensor_plan.h"
#include "sextant/torch/operators/views.h"

namespace sextant {

DecoderCache::DecoderCache(int64_t layers, const KvCacheShape& shape)
    : layers_(static_cast<size_t>(layers), KvCache(shape)),
      plans_(std::make_shared<PlanCache>(kPlansOfDecoder)) {}

std::vector<KvCache*> DecoderCache::all() {
  std::vector<KvCache*> parts;
  for (KvCache& layer : layers_) parts.push_back(&layer);
  if (inputs_) parts.push_back(&*inputs_);
  return parts;
}

int64_t DecoderCache::add() {
  int64_t sequence = 0;
  for (KvCache* part : all()) sequence = part->add();
  return sequence;
}

int64_t DecoderCache::fork(int64_t sequence, int64_t rows) {
  int64_t copy = 0;
  for (KvCache* part : all()) copy = part->fork(sequence, rows);
  return copy;
}

void DecoderCache::truncate(int64_t sequence, int64_t rows) {
  for (KvCache* part : all()) part->truncate(sequence, rows);
}

void DecoderCache::remove(int64_t sequence) {
  for (KvCache* part : all()) part->remove(sequence);
}

at::Tensor DecoderCache::last_inputs(std::span<const SequenceGrowth> sequences) const {
  const auto count = static_cast<int64_t>(sequences.size());
  at::Tensor rows = at::zeros({1, 1, count, inputs_->shape().key_columns}, at::kFloat);
  at::Tensor no_values = at::empty({1, 1, count, 0}, at::kFloat);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t sequence = sequences[static_cast<size_t>(n)].sequence;
    const int64_t before = inputs_->rows(sequence);
    if (before == 0) continue;
    inputs_->read(sequence, before - 1, view_4d<float>(rows.narrow(2, n, 1)),
                  view_4d<float>(no_values.narrow(2, n, 1)));
  }
  return rows.squeeze(1);
}

void DecoderCache::append_inputs(const at::Tensor& x, const Layout& layout,
                                 std::span<const SequenceGrowth> sequences) {
  const at::Tensor keys = x.unsqueeze(1);
  const at::Tensor no_values = at::empty({1, 1, x.size(1), 0}, x.options());
  for (size_t n = 0; n < sequences.size(); ++n) {
    const Frame& frame = layout.cached[n];
    const auto rows = [&](const at::Tensor& all) {
      return view_4d<const float>(all.narrow(2, frame.query_row, frame.queries));
    };
    inputs_->append(sequences[n].sequence, rows(keys), rows(no_values));
  }
}

DecoderCache Decoder::new_cache(int64_t page_rows) const {
  // A method may keep more columns with each key than its head_dim.
  const at::Tensor no_keys = at::empty({1, options_.key_heads, 0, options_.head_dim()});
  const at::Tensor no_input = at::empty({1, 0, options_.width});
  std::vector<at::Tensor> parameters = method_parameters();
  for (at::Tensor& parameter : parameters) parameter = parameter.cpu();
  const at::Tensor keys = with_key_columns(*method_, no_keys, no_input, 0, parameters);
  DecoderCache cache(options_.layers, {.key_heads = options_.key_heads,
                                       .key_columns = keys.size(3),
                                       .value_columns = options_.head_dim(),
                                       .page_rows = page_rows});
  if (method_->recurs_over_input())
    cache.inputs_.emplace(KvCacheShape{
        .key_heads = 1, .key_columns = options_.width, .value_columns = 0, .page_rows = page_rows});
  return cache;
}

void Decoder::check_cache(const DecoderCache& cache) const {
  if (!device().is_cpu())
    fail("decoder: cache: expected a decoder on the CPU, but it is on " + device().str());
  if (cache.layers_.size() != layers_.size())
    fail("decoder: cache: expected one of " + std::to_string(layers_.size()) + " layers, but got " +
         std::to_string(cache.layers_.size()));
  if (cache.inputs_.has_value() != method_->recurs_over_input())
    fail(std::string("decoder: cache: expected one ") +
         (method_->recurs_over_input() ? "with" : "without") +
         " inputs, as new_cache() makes it for this method, but got another");
}

}  // namespace sextant
