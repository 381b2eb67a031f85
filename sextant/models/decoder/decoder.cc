// Each layer is norm, attention by the method, norm, and MLP, over plain operators; a memory keeps
// the keys and values of earlier tokens.
#include "sextant/models/decoder/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/models/dense_ops.h"
#include "sextant/models/init.h"
#include "sextant/torch/operators/tensor_plan.h"
#include "sextant/torch/operators/views.h"

namespace sextant {
namespace {

void check_tokens(const at::Tensor& tokens) {
  if (tokens.dim() != 2 || tokens.size(1) < 1)
    fail("decoder: tokens: expected [batch, length], but got " + std::to_string(tokens.dim()) +
         " dimensions or no length");
}

NormOptions norm_options(const DecoderOptions& options) {
  return {.epsilon = options.norm_epsilon, .centered = options.norm == Norm::kLayerNorm};
}

}  // namespace

Decoder::Decoder(const DecoderOptions& options, std::unique_ptr<Method> method, uint64_t seed)
    : options_(options),
      method_(std::move(method)),
      embedding_scale_(options.tied ? std::sqrt(static_cast<double>(options.width)) : 1) {
  check(options);
  const auto add = [&](NamedParameter parameter) {
    parameter.value = parameter.value.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    parameter.value.set_requires_grad(true);
    parameters_.push_back(parameter);
    return parameter.value;
  };
  const auto gain = [&](const std::string& name) {
    return add({.name = name, .value = constant_values({options.width}, 1)});
  };
  // Rows are outputs, as in at::linear; a variance of 1 / inputs preserves the variance of
  // activations.
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns, double scale) {
    const double deviation = scale / std::sqrt(static_cast<double>(columns));
    return add({.name = name,
                .value = normal_values({rows, columns}, 0, deviation, seed, name),
                .weight_decay = true});
  };

  // The first layer's input has variance 1, whether the matrices are tied or not.
  const double at_start = std::sqrt(static_cast<double>(options.width)) / embedding_scale_;
  embedding_ = matrix("embedding", options.vocabulary, options.width, at_start);
  // Each layer adds two terms to the residual stream; with this scale the sum of all terms has the
  // variance of one term.
  const double into_stream = 1 / std::sqrt(2.0 * static_cast<double>(options.layers));
  const int64_t head_rows = (options.heads + 2 * options.key_heads) * options.head_dim();
  const int64_t up_rows = (options.activation == Activation::kSwiGlu ? 2 : 1) * options.mlp_width;
  for (int64_t index = 0; index < options.layers; ++index) {
    const std::string prefix = "layers." + std::to_string(index) + ".";
    Layer layer;
    layer.attention_norm = gain(prefix + "attention.norm");
    layer.attention_in = matrix(prefix + "attention.in", head_rows, options.width, 1);
    layer.attention_out =
        matrix(prefix + "attention.out", options.width, options.width, into_stream);
    layer.mlp_norm = gain(prefix + "mlp.norm");
    layer.mlp_up = matrix(prefix + "mlp.up", up_rows, options.width, 1);
    layer.mlp_down = matrix(prefix + "mlp.down", options.width, options.mlp_width, into_stream);
    layers_.push_back(layer);
  }
  final_norm_ = gain("final_norm");
  unembedding_ =
      options.tied ? embedding_ : matrix("unembedding", options.vocabulary, options.width, 1);

  for (const ParameterSpec& spec : method_->parameters()) {
    const std::string name = "position." + spec.name;
    same_as_.push_back(spec.same_as);
    if (spec.same_as) {
      if (spec.same_as->layer < 0 || spec.same_as->layer >= options.layers)
        fail("decoder: method: " + spec.name + ": expected a layer of 0 to " +
             std::to_string(options.layers - 1) + ", but got " +
             std::to_string(spec.same_as->layer));
      method_parameters_.emplace_back();
      continue;
    }
    method_parameters_.push_back(add({.name = name,
                                      .value = initial_value(spec, seed, name),
                                      .learning_rate_scale = spec.learning_rate_scale,
                                      .weight_decay = spec.weight_decay}));
  }
}

void Decoder::move_to(c10::Device device) {
  if (device == this->device()) return;
  for (NamedParameter& parameter : parameters_) {
    parameter.value.mutable_grad().reset();
    parameter.value.set_data(parameter.value.detach().to(device));
  }
}

at::Tensor Decoder::logits(const at::Tensor& tokens) const {
  Memory none;
  return logits(tokens, none);
}

at::Tensor Decoder::logits(const at::Tensor& tokens, Memory& memory) const {
  return logits_of(read(tokens, memory));
}

at::Tensor Decoder::losses(const at::Tensor& tokens, const at::Tensor& targets,
                           Memory& memory) const {
  check_tokens(tokens);
  if (targets.sizes() != tokens.sizes())
    fail("decoder: targets: expected as many as tokens, but got another shape");
  return losses_of(read(tokens, memory), here(targets));
}

at::Tensor Decoder::losses_of(const at::Tensor& stream, const at::Tensor& targets) const {
  at::Tensor x = stream.reshape({-1, options_.width});
  at::Tensor answers = targets.reshape({-1});
  const at::Tensor asked = answers.ge(0).nonzero().squeeze(1);
  if (asked.size(0) < answers.size(0)) {
    x = x.index_select(0, asked);
    answers = answers.index_select(0, asked);
  }
  return cross_entropy(logits_of(x), answers);
}

at::Tensor Decoder::embedded(const at::Tensor& tokens, const Layout& layout,
                             std::span<const at::Tensor> parameters) const {
  at::Tensor x = at::embedding(embedding_, tokens);
  if (options_.tied) x = x * embedding_scale_;
  return method_->embed(x, layout, parameters);
}

at::Tensor Decoder::last_logits(const at::Tensor& tokens) const {
  check_tokens(tokens);
  const at::Tensor ids = here(tokens);
  const Reading reading = {.layout = layout_of(ids, 0), .last_only = true};
  return logits_of(read(ids, reading, [](size_t, const at::Tensor& x) { return x; })).squeeze(1);
}

at::Tensor Decoder::logits_at(const at::Tensor& tokens, const at::Tensor& positions) const {
  Memory none;
  const at::Tensor x = read(tokens, none);
  const at::Tensor rows = here(positions).view({-1, 1, 1}).expand({-1, 1, options_.width});
  return logits_of(x.gather(1, rows)).squeeze(1);
}

Layout Decoder::layout_of(const at::Tensor& tokens, int64_t before) const {
  Layout layout = {.batch = tokens.size(0),
                   .queries = tokens.size(1),
                   .keys = before + tokens.size(1),
                   .first_query = before,
                   .causal = options_.causal};
  if (options_.padding < 0) return layout;
  const at::Tensor shown = tokens.ne(options_.padding);
  if (!shown.all().item<bool>()) layout.mask = shown.view({layout.batch, 1, 1, layout.keys});
  return layout;
}

at::Tensor Decoder::read(const at::Tensor& given, Memory& memory) const {
  check_tokens(given);
  const at::Tensor tokens = here(given);
  if (memory.limit != 0 || !memory.layers.empty()) check_memory(memory, tokens.size(0));
  // Positions count from the first one in memory: a relative method uses distances only.
  const int64_t before = memory.positions(), keys = before + tokens.size(1);
  Reading reading = {.layout = layout_of(tokens, before)};
  if (before > 0 && method_->recurs_over_input())
    reading.input_before = memory.layers[0].narrow(1, before - 1, 1);
  const int64_t kept = std::min(memory.limit, keys);
  std::vector<at::Tensor> remembered;
  at::Tensor stream = read(tokens, reading, [&](size_t index, const at::Tensor& x) {
    at::Tensor seen = before > 0 ? at::cat({memory.layers[index], x}, 1) : x;
    // Kept for the next segment.
    if (kept > 0) remembered.push_back(seen.detach().narrow(1, keys - kept, kept));
    return seen;
  });
  memory.layers = std::move(remembered);
  return stream;
}

at::Tensor Decoder::logits(const at::Tensor& tokens, DecoderCache& cache,
                           std::span<const int64_t> sequences) const {
  check_tokens(tokens);
  if (tokens.size(0) != static_cast<int64_t>(sequences.size()))
    fail("decoder: tokens: expected a row for each of " + std::to_string(sequences.size()) +
         " sequences, but got " + std::to_string(tokens.size(0)));
  if (!options_.causal)
    fail(
        "decoder: cache: expected a causal model, but attention is bidirectional: earlier results "
        "would change with each new token");
  check_cache(cache);
  Reading reading = {.cache = &cache};
  for (const int64_t sequence : sequences) reading.sequences.push_back({sequence, tokens.size(1)});
  reading.layout = continued(cache.layers_[0], reading.sequences);
  if (cache.inputs_) reading.input_before = cache.last_inputs(reading.sequences);
  const at::NoGradGuard no_gradients;
  std::list<ProvisionalRows> appended;
  for (KvCache* part : cache.all()) appended.emplace_back(*part, sequences);
  // All sequences form one batch entry, one after the other.
  const at::Tensor logits =
      logits_of(read(tokens.reshape({1, -1}), reading, [](size_t, const at::Tensor& x) {
        return x;
      })).view({tokens.size(0), tokens.size(1), -1});
  for (ProvisionalRows& rows : appended) rows.keep();
  return logits;
}

template <class SeenBy>
at::Tensor Decoder::read(const at::Tensor& tokens, Reading reading, SeenBy&& seen_by) const {
  Layout layout = reading.layout;
  if (method_->reads_token_ids()) layout.token_ids = tokens;
  layout.input_before = reading.input_before;
  reading.layout.plans =
      reading.cache ? reading.cache->plans_ : std::make_shared<PlanCache>(kPlansOfDecoder);
  reading.parameters = method_parameters();
  at::Tensor x = embedded(tokens, layout, reading.parameters);
  if (reading.cache && reading.cache->inputs_)
    reading.cache->append_inputs(x, layout, reading.sequences);
  const size_t last = layers_.size() - 1;
  for (size_t index = 0; index < last; ++index) x = run(x, seen_by(index, x), index, reading);
  const at::Tensor seen = seen_by(last, x);
  x = method_->embed_last(x, layout, reading.parameters);
  if (reading.last_only && layout.queries > 1) {  // a mask by key serves any number of queries
    x = x.narrow(1, layout.queries - 1, 1);
    reading.layout.first_query += layout.queries - 1;
    reading.layout.queries = 1;
  }
  for (int64_t n = 0; n < method_->last_layer_runs(); ++n) x = run(x, seen, last, reading);
  return x;
}

at::Tensor Decoder::logits_of(const at::Tensor& x) const {
  return projected(norm(x, final_norm_), unembedding_);
}

void Decoder::check_memory(const Memory& memory, int64_t batch) const {
  if (!options_.causal || options_.padding >= 0)
    fail("decoder: memory: expected none, as attention is bidirectional or has padding");
  if (!method_->relative())
    fail("decoder: memory: expected none, as the method goes by absolute positions");
  if (memory.limit < 0)
    fail("decoder: memory.limit: expected at least 0, but got " + std::to_string(memory.limit));
  if (memory.layers.empty()) return;
  if (memory.layers.size() != layers_.size())
    fail("decoder: memory.layers: expected " + std::to_string(layers_.size()) + ", but got " +
         std::to_string(memory.layers.size()));
  const std::vector<int64_t> sizes = {batch, memory.positions(), options_.width};
  for (const at::Tensor& layer : memory.layers)
    if (layer.sizes() != at::IntArrayRef(sizes))
      fail("decoder: memory.layers: expected [" + std::to_string(batch) + ", positions, " +
           std::to_string(options_.width) + "] of each, but got another shape");
}

at::Tensor Decoder::run(const at::Tensor& x, const at::Tensor& seen, size_t index,
                        const Reading& reading) const {
  return after_mlp(attended(x, seen, index, reading), layers_[index]);
}

std::vector<at::Tensor> Decoder::heads_of(const at::Tensor& x, const at::Tensor& seen,
                                          const Layer& layer) const {
  const int64_t heads = options_.heads, key_heads = options_.key_heads;
  const int64_t query_rows = heads * options_.head_dim();
  const int64_t key_rows = key_heads * options_.head_dim();
  const auto project = [&](const at::Tensor& from, const at::Tensor& matrix, at::IntArrayRef rows) {
    // The split comes first: the gradient is then a concatenation of rows that are contiguous in
    // memory.
    std::vector<at::Tensor> parts = projected(from, matrix).split_with_sizes(rows, 2);
    for (at::Tensor& part : parts)
      part = part.view({from.size(0), from.size(1), -1, options_.head_dim()}).transpose(1, 2);
    return parts;
  };
  if (x.is_same(seen)) return project(x, layer.attention_in, {query_rows, key_rows, key_rows});
  std::vector<at::Tensor> all =
      project(x, layer.attention_in.slice(0, 0, query_rows), {query_rows});
  for (at::Tensor& part :
       project(seen, layer.attention_in.slice(0, query_rows), {key_rows, key_rows}))
    all.push_back(std::move(part));
  return all;
}

at::Tensor Decoder::attended(const at::Tensor& x, const at::Tensor& seen, size_t index,
                             const Reading& reading) const {
  const Layer& layer = layers_[index];
  const at::Tensor of_queries = norm(x, layer.attention_norm);
  const at::Tensor of_keys = x.is_same(seen) ? of_queries : norm(seen, layer.attention_norm);
  std::vector<at::Tensor> heads = heads_of(of_queries, of_keys, layer);
  heads[0] = with_query_columns(*method_, heads[0], of_queries, static_cast<int64_t>(index),
                                reading.parameters);
  heads[1] = with_key_columns(*method_, heads[1], of_keys, static_cast<int64_t>(index),
                              reading.parameters);
  const at::Tensor out = reading.cache
                             ? attend_over(reading.cache->layers_[index], heads, index, reading)
                             : attend_with(*method_, heads[0], heads[1], heads[2], reading.layout,
                                           static_cast<int64_t>(index), reading.parameters);
  return projected(out.transpose(1, 2).reshape(x.sizes()), layer.attention_out, x);
}

at::Tensor Decoder::attend_over(KvCache& cache, const std::vector<at::Tensor>& heads, size_t index,
                                const Reading& reading) const {
  for (size_t n = 0; n < reading.sequences.size(); ++n) {
    const Frame& frame = reading.layout.cached[n];
    // A layer that runs again has appended these rows already.
    if (cache.rows(reading.sequences[n].sequence) == frame.keys) continue;
    const auto rows = [&](const at::Tensor& x) {
      return view_4d<const float>(x.narrow(2, frame.query_row, frame.queries));
    };
    cache.append(reading.sequences[n].sequence, rows(heads[1]), rows(heads[2]));
  }
  return attend_cached(*method_, heads[0], cache, reading.sequences, reading.layout,
                       static_cast<int64_t>(index), reading.parameters);
}

at::Tensor Decoder::after_mlp(const at::Tensor& x, const Layer& layer) const {
  if (options_.activation == Activation::kSquaredRelu)
    return squared_relu_layer(x, layer.mlp_norm, layer.mlp_up, layer.mlp_down,
                              norm_options(options_));
  const at::Tensor up = projected(norm(x, layer.mlp_norm), layer.mlp_up);
  if (options_.activation == Activation::kGelu) return projected(at::gelu(up), layer.mlp_down, x);
  const std::vector<at::Tensor> halves = up.chunk(2, /*dim=*/-1);  // SwiGLU
  return projected(at::silu(halves[0]) * halves[1], layer.mlp_down, x);
}

at::Tensor Decoder::norm(const at::Tensor& x, const at::Tensor& gain) const {
  return normalized(x, gain, norm_options(options_));
}

void Decoder::replace_method(std::unique_ptr<Method> method) {
  const auto same = [](const ParameterSpec& a, const ParameterSpec& b) {
    return a.name == b.name && a.sizes == b.sizes && a.same_as == b.same_as;
  };
  if (!std::ranges::equal(method->parameters(), method_->parameters(), same))
    fail("decoder: method: expected one with the parameters of the trained one");
  method_ = std::move(method);
}

std::vector<at::Tensor> Decoder::method_parameters() const {
  std::vector<at::Tensor> all = method_parameters_;
  for (size_t n = 0; n < all.size(); ++n)
    if (same_as_[n]) all[n] = projection(*same_as_[n]);
  return all;
}

at::Tensor Decoder::projection(const LayerProjection& which) const {
  const bool queries = which.of == LayerProjection::Of::kQuery;
  const int64_t query_rows = options_.heads * options_.head_dim();
  const int64_t rows = queries ? query_rows : options_.key_heads * options_.head_dim();
  const at::Tensor& in = layers_[static_cast<size_t>(which.layer)].attention_in;
  if (which.bias) return at::zeros({rows}, in.options());  // this decoder has no biases
  return in.narrow(0, queries ? 0 : query_rows, rows);
}

int64_t Decoder::weights() const {
  int64_t count = 0;
  for (const NamedParameter& parameter : parameters_) count += parameter.value.numel();
  return count;
}

ModelShape model_shape(const DecoderOptions& options, int64_t train_length) {
  return {.layers = options.layers,
          .heads = options.heads,
          .key_heads = options.key_heads,
          .head_dim = options.head_dim(),
          .width = options.width,
          .train_length = train_length,
          .vocabulary = options.vocabulary};
}

}  // namespace sextant
