// A transformer whose position encoding is a plug-in: decoder-only, or with attention in both
// directions (DecoderOptions::causal).
//
//   x = embed(tokens) sqrt(width)                     -> method.embed(x)
//   x = x + out(attend(method, q, k, v of norm(x)))      for each layer
//   x = x + down(activation(up(norm(x))))
//   logits = norm(x) embedding^T
//
// The last layer may run again on method.embed_last(x), with the keys of x
// (sextant/torch/method.h). If DecoderOptions::tied is false, embedding and unembedding are two
// matrices without the factor sqrt(width).
//
// A sequence can be processed in segments (Dai et al. 2019, Transformer-XL): keys and values of a
// layer then come from [memory; x], where memory is the layer's input at earlier positions, without
// gradient. Or it is decoded over a cache that holds each layer's keys and values of all earlier
// positions: any split of a sequence into a prompt, chunks and single steps gives the result of one
// call, with every method.
//
// The decoder is pre-norm and has no biases. It holds its parameters as plain tensors and computes
// with tensor functions; parameters() lists them for training, saving and loading. It computes
// where its parameters are: on the CPU, or after move_to() on a CUDA device. Token ids, targets and
// other integers of a call may be on the CPU in any case; results are on the decoder's device.
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
  at::Tensor value;  // float32, a leaf that requires its gradient
  double learning_rate_scale = 1;
  bool weight_decay = false;
};

// The memory of a sequence: each layer's input at the last `limit` positions.
struct Memory {
  int64_t limit = 0;
  std::vector<at::Tensor> layers = {};  // [batch, 0 to limit, width]; empty: the sequence begins

  int64_t positions() const { return layers.empty() ? 0 : layers[0].size(1); }
};

// Keys and values of growing sequences, of all layers: Decoder::new_cache(). For a method that
// recurs over the input also the first layer's inputs, from which it continues.
class DecoderCache {
 public:
  // The functions of KvCache, applied to the same sequence of every layer.
  int64_t add();
  int64_t fork(int64_t sequence, int64_t rows);
  void truncate(int64_t sequence, int64_t rows);
  void remove(int64_t sequence);
  int64_t rows(int64_t sequence) const { return layers_[0].rows(sequence); }

 private:
  friend class Decoder;
  DecoderCache(int64_t layers, const KvCacheShape& shape);

  // All caches: those of the layers, then that of the inputs, if any.
  std::vector<KvCache*> all();
  // The last input of each sequence, [1, sequences, width]; zeros where there is none yet.
  at::Tensor last_inputs(std::span<const SequenceGrowth> sequences) const;
  // Appends the rows of x [1, rows of all sequences, width] to the inputs.
  void append_inputs(const at::Tensor& x, const Layout& layout,
                     std::span<const SequenceGrowth> sequences);

  std::vector<KvCache> layers_;
  std::optional<KvCache> inputs_;
  std::shared_ptr<PlanCache> plans_;  // of all layers, which each step renews
};

// Layers of a decoder differ by their windows at most.
inline constexpr size_t kPlansOfDecoder = 4;

class Decoder {
 public:
  // Draws initial values from `seed`. They depend on the seed and the parameter's name only, so
  // models with different methods share the initial values of all other parameters. Throws Error if
  // sizes do not fit.
  Decoder(const DecoderOptions& options, std::unique_ptr<Method> method, uint64_t seed);

  // Copies the parameters to another device, without their gradients. Tensors of parameters() stay
  // the same objects.
  void move_to(c10::Device device);
  c10::Device device() const { return embedding_.device(); }

  // int64 [batch, length] -> [batch, length, vocabulary]. The first column has position 0.
  at::Tensor logits(const at::Tensor& tokens) const;

  // The logits of the next segment of a sequence, which sees the positions in `memory`; memory is
  // then updated for the segment after it. Throws Error for a method with absolute positions: rows
  // in memory already hold theirs, and the positions of an endless sequence are never trained.
  at::Tensor logits(const at::Tensor& tokens, Memory& memory) const;

  // -log p of each token of `targets`, int64 as `tokens`; targets below 0 are skipped. Returns
  // [targets not skipped], in the order of the sequences.
  at::Tensor losses(const at::Tensor& tokens, const at::Tensor& targets, Memory& memory) const;

  // The same for permutation language models (Yang et al. 2019, XLNet, section 2.3). order, int64
  // as `tokens`: the rank of each position. The content stream of a position attends to ranks up to
  // its own, its query stream to ranks below its own; the query stream predicts the token.
  // Attention of a position of the lowest rank is zero in the query stream. Throws Error without
  // options().query_token, or for a method with absolute positions in its last layer or a
  // recurrence over the input.
  at::Tensor permuted_losses(const at::Tensor& tokens, const at::Tensor& targets,
                             const at::Tensor& order) const;

  // The logits of the last position only, [batch, vocabulary]; the last layer then computes only
  // this position.
  at::Tensor last_logits(const at::Tensor& tokens) const;

  // An empty cache with this decoder's sizes, on the CPU. page_rows: see KvCacheShape.
  DecoderCache new_cache(int64_t page_rows = 256) const;

  // The logits of the next tokens of cached sequences, int64 [sequences, rows] -> [sequences, rows,
  // vocabulary], without gradient. Each sequence's first token has position 0. The decoder must be
  // on the CPU. If an Error is thrown, the cache is unchanged.
  at::Tensor logits(const at::Tensor& tokens, DecoderCache& cache,
                    std::span<const int64_t> sequences) const;

  // Logits at one position of each sequence, int64 [batch] -> [batch, vocabulary].
  at::Tensor logits_at(const at::Tensor& tokens, const at::Tensor& positions) const;

  // Keeps the parameters and uses them with another method, for example RoPE's with a window.
  // Throws Error if the methods do not have the same parameters.
  void replace_method(std::unique_ptr<Method> method);

  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  // In the method's order. Parameters that are a layer's own projection are views of it.
  std::vector<at::Tensor> method_parameters() const;
  int64_t weights() const;  // the number of elements of all parameters
  const DecoderOptions& options() const { return options_; }

 private:
  struct Layer {
    at::Tensor attention_norm, attention_in, attention_out;  // in: [q; k; v], out: [width, width]
    at::Tensor mlp_norm, mlp_up, mlp_down;
  };

  // The input of a pass: the layout of its rows and, with a cache, the keys and values before them.
  struct Reading {
    Layout layout = {};
    DecoderCache* cache = nullptr;
    std::vector<SequenceGrowth> sequences = {};
    bool last_only = false;                   // only the last row of each sequence is needed
    std::vector<at::Tensor> parameters = {};  // method_parameters(), the same for all layers
    at::Tensor input_before = {};             // Layout::input_before, of embed() only
  };

  at::Tensor here(const at::Tensor& x) const { return x.to(device()); }
  void check_memory(const Memory& memory, int64_t batch) const;
  void check_cache(const DecoderCache& cache) const;
  // Returns the residual stream after all layers. seen_by(index, x) returns the rows from which a
  // layer computes its keys and values.
  template <class SeenBy>
  at::Tensor read(const at::Tensor& tokens, Reading reading, SeenBy&& seen_by) const;
  at::Tensor read(const at::Tensor& tokens, Memory& memory) const;
  // The layout of whole sequences, [batch, length], behind `before` positions of memory.
  Layout layout_of(const at::Tensor& tokens, int64_t before) const;
  at::Tensor logits_of(const at::Tensor& x) const;
  at::Tensor query_stream(const at::Tensor& tokens, const at::Tensor& order) const;
  at::Tensor embedded(const at::Tensor& tokens, const Layout& layout,
                      std::span<const at::Tensor> parameters) const;
  // -log p of the targets of 0 or above, from the residual stream.
  at::Tensor losses_of(const at::Tensor& stream, const at::Tensor& targets) const;
  at::Tensor projection(const LayerProjection& which) const;
  // Runs one layer: queries and residual stream come from x, keys and values from `seen`.
  at::Tensor run(const at::Tensor& x, const at::Tensor& seen, size_t index,
                 const Reading& reading) const;
  at::Tensor attended(const at::Tensor& x, const at::Tensor& seen, size_t index,
                      const Reading& reading) const;
  at::Tensor attend_over(KvCache& cache, const std::vector<at::Tensor>& heads, size_t index,
                         const Reading& reading) const;
  // Returns q, k and v, [batch, heads, rows, head_dim], of normed inputs.
  std::vector<at::Tensor> heads_of(const at::Tensor& x, const at::Tensor& seen,
                                   const Layer& layer) const;
  at::Tensor after_mlp(const at::Tensor& x, const Layer& layer) const;
  at::Tensor norm(const at::Tensor& x, const at::Tensor& gain) const;

  DecoderOptions options_;
  std::unique_ptr<Method> method_;
  std::vector<NamedParameter> parameters_;
  at::Tensor embedding_, final_norm_, unembedding_;  // unembedding_ is embedding_ if tied
  double embedding_scale_;
  std::vector<Layer> layers_;
  std::vector<at::Tensor> method_parameters_;  // undefined for a layer's own projection
  std::vector<std::optional<LayerProjection>> same_as_;
};

// The sizes of the model that the method needs. train_length: L.
ModelShape model_shape(const DecoderOptions& options, int64_t train_length);

}  // namespace sextant
