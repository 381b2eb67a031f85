// A decoder-only transformer whose position encoding is a plug-in.
//
//   x = embed(tokens) sqrt(width)                     -> method.embed(x)
//   x = x + out(attend(method, q, k, v of norm(x)))      for each layer
//   x = x + down(activation(up(norm(x))))
//   (the last layer may run again on method.embed_last(x), with the keys of x:
//   sextant/torch/method.h) logits = norm(x) embedding^T                      (or matrices of their
//   own, DecoderOptions::tied)
//
// A text can be read in segments (Dai et al. 2019, Transformer-XL): keys and values of a layer then
// come from [memory; x], the memory being the layer's input at the positions before, without
// gradient. Or it is decoded over a cache, which holds each layer's keys and values of all
// positions before: any split of a text into a prompt, chunks and single steps gives what reading
// it at once gives, with every method.
//
// Pre-norm, no biases. It holds its parameters as plain tensors and computes with tensor functions;
// who trains it, saves it or reads it asks for the list.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/cache/kv_cache.h"
#include "sextant/models/decoder/decoder_options.h"
#include "sextant/torch/cached_attention.h"
#include "sextant/torch/method.h"

namespace sextant {

struct NamedParameter {
  std::string name;  // "layers.0.attention.in", "position.bias"
  at::Tensor value;  // float32, a leaf that asks for its gradient
  double learning_rate_scale = 1;
  bool weight_decay = false;
};

// What a reader keeps of a text: each layer's input at the last `limit` positions.
struct Memory {
  int64_t limit = 0;
  std::vector<at::Tensor> layers = {};  // [batch, 0 to limit, width]; none: the text begins

  int64_t positions() const { return layers.empty() ? 0 : layers[0].size(1); }
};

// Keys and values of texts that grow, of all layers: Decoder::new_cache().
class DecoderCache {
 public:
  // As in KvCache, the same text of every layer.
  int64_t add();
  int64_t fork(int64_t sequence, int64_t rows);
  void truncate(int64_t sequence, int64_t rows);
  void remove(int64_t sequence);
  int64_t rows(int64_t sequence) const { return layers_[0].rows(sequence); }

 private:
  friend class Decoder;
  DecoderCache(int64_t layers, const KvCacheShape& shape)
      : layers_(static_cast<size_t>(layers), KvCache(shape)) {}

  std::vector<KvCache> layers_;
};

class Decoder {
 public:
  // Starts from `seed`. A parameter's start depends on the seed and its name only, so models that
  // differ in their method share the start of all else. Throws Error if sizes do not fit.
  Decoder(const DecoderOptions& options, std::unique_ptr<Method> method, uint64_t seed);

  // int64 [batch, length] -> [batch, length, vocabulary]. Position 0 is the first column.
  at::Tensor logits(const at::Tensor& tokens) const;

  // The next segment of a text. It sees what memory holds and leaves there what the next one sees.
  // Throws Error if the method goes by absolute positions: those of a memory have been used up, and
  // those of a text without end are never trained.
  at::Tensor logits(const at::Tensor& tokens, Memory& memory) const;

  // -log p of each token of `targets`, int64 as `tokens`; those below 0 are not asked for. [asked],
  // in the order of the texts.
  at::Tensor losses(const at::Tensor& tokens, const at::Tensor& targets, Memory& memory) const;

  // Of the last position only, [batch, vocabulary]: the last layer then runs for that one.
  at::Tensor last_logits(const at::Tensor& tokens) const;

  // A cache of this decoder's sizes. page_rows: see KvCacheShape.
  DecoderCache new_cache(int64_t page_rows = 256) const;

  // The next tokens of texts of a cache, int64 [texts, rows] -> [texts, rows, vocabulary], without
  // gradient. Position 0 is each text's first token. If it throws Error the cache is as it was.
  at::Tensor logits(const at::Tensor& tokens, DecoderCache& cache,
                    std::span<const int64_t> sequences) const;

  // The same parameters read by another method: RoPE's, tested with a window. Throws Error if the
  // methods do not have the same parameters.
  void replace_method(std::unique_ptr<Method> method);

  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  // In the method's order; those that are a layer's own projection are views of it.
  std::vector<at::Tensor> method_parameters() const;
  int64_t weights() const;  // how many numbers that is
  const DecoderOptions& options() const { return options_; }

 private:
  struct Layer {
    at::Tensor attention_norm, attention_in, attention_out;  // in: [q; k; v], out: [width, heads]
    at::Tensor mlp_norm, mlp_up, mlp_down;
  };

  // What is read: where its rows stand, and, if there is a cache, the keys and values before them.
  struct Reading {
    Layout layout;
    DecoderCache* cache = nullptr;
    std::vector<SequenceGrowth> sequences = {};
    bool last_only = false;                   // of each text only the last row is asked for
    std::vector<at::Tensor> parameters = {};  // method_parameters(), the same for all layers
  };

  void check_memory(const Memory& memory, int64_t batch) const;
  // The stream behind all layers. seen_by(index, x): what a layer makes its keys and values of.
  template <class SeenBy>
  at::Tensor read(const at::Tensor& tokens, Reading reading, SeenBy&& seen_by) const;
  at::Tensor read(const at::Tensor& tokens, Memory& memory) const;
  at::Tensor logits_of(const at::Tensor& x) const;
  at::Tensor projection(const LayerProjection& which) const;
  // One layer: its queries and its stream are those of x, its keys and values those of `seen`.
  at::Tensor run(const at::Tensor& x, const at::Tensor& seen, size_t index,
                 const Reading& reading) const;
  at::Tensor attended(const at::Tensor& x, const at::Tensor& seen, size_t index,
                      const Reading& reading) const;
  at::Tensor attend_over(KvCache& cache, const std::vector<at::Tensor>& heads, size_t index,
                         const Reading& reading) const;
  // q, k and v, [batch, heads, rows, head_dim], of normed inputs
  std::vector<at::Tensor> heads_of(const at::Tensor& x, const at::Tensor& seen,
                                   const Layer& layer) const;
  at::Tensor after_mlp(const at::Tensor& x, const Layer& layer) const;
  at::Tensor norm(const at::Tensor& x, const at::Tensor& gain) const;

  DecoderOptions options_;
  std::unique_ptr<Method> method_;
  std::vector<NamedParameter> parameters_;
  at::Tensor embedding_, final_norm_, unembedding_;  // the last is the first if they are tied
  double embedding_scale_;
  std::vector<Layer> layers_;
  std::vector<at::Tensor> method_parameters_;  // undefined where one is a layer's
  std::vector<std::optional<LayerProjection>> same_as_;
};

// What the method must know of the model. train_length: L.
ModelShape model_shape(const DecoderOptions& options, int64_t train_length);

}  // namespace sextant
