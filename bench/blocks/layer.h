// The attention block of an encoder as a ggml graph: projections, attention and output projection,
// with random weights. Each way to write the attention is one function. A Layer owns the weights
// and inputs, in float32; graphs read them in place.
//
// The ggml ways have the operations of engines, read in November 2026:
//   whisper.cpp  src/parakeet.cpp (0024ebd8): the relative shift by pad, roll, reshape, view, cont
//   CrispASR     src/core/fastconformer.h (19aedc20): the shift as one view with a shorter row,
//                here without the copies of it; `flash`, the default there: the shifted term as a
//                float16 mask of ggml_flash_attn_ext
//   deberta.cpp  (06ac4fab, by werent4): products with all rows of the table, gathered by an
//                operation of the port's own, here for all threads
//   by distance  ggml's own operations alone: ggml_get_rows lays the table out by distance, and the
//                products are shifted as in CrispASR
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/ggml_graph.h"
#include "sextant/ggml.h"

namespace sextant::bench {

struct LayerSizes {
  int64_t rows = 377, heads = 8, head_dim = 128;

  int64_t width() const { return heads * head_dim; }
  int64_t distances() const { return 2 * rows - 1; }
};

// A layer [width, width] and its bias, [width] or empty.
struct Linear {
  std::vector<float> weight, bias;
};

// Tensors of a graph that the ways to write attention take. ggml's order of dimensions.
struct Projected {
  ggml_tensor *q, *k, *v;  // [head_dim, heads, rows]
};

class Layer {
 public:
  Layer(const LayerSizes& sizes, const std::string& stream, bool biases);
  virtual ~Layer() { sextant_plan_destroy(op_.plan); }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  // The names of all ways; those of `exact()` compute in float32.
  virtual std::vector<std::string> ways() const = 0;
  virtual bool exact(const std::string& way) const = 0;
  // Adds the block to a graph; the result is [width, rows].
  ggml_tensor* build(GgmlGraph& graph, const std::string& way);
  // The block in float64 by loops; `threads` of ggml do not matter.
  std::vector<double> reference() const;

  const LayerSizes sizes;

 protected:
  // Attention [head_dim, heads, rows], contiguous.
  virtual ggml_tensor* attention(GgmlGraph& graph, const Projected& p, const std::string& way) = 0;
  // q, k: rows x width. Adds the terms of position to scores [rows, rows] of a head, before the
  // scale, whose value it returns.
  virtual double add_positions(int64_t head, const std::vector<double>& q,
                               const std::vector<double>& k, std::vector<double>& scores) const = 0;

  ggml_tensor* linear(GgmlGraph& graph, const Linear& layer, ggml_tensor* x) const;
  std::vector<double> linear(const Linear& layer, const std::vector<double>& x) const;
  Linear random_layer(const std::string& stream, bool bias) const;

  // An operation of sextant/ggml.h. Throws Error if it is null.
  static ggml_tensor* made(ggml_tensor* result);

  sextant_ggml op_ = {sizeof op_};
  std::vector<float> x_;  // [rows, width]
  Linear q_, k_, v_, out_;
};

// count normal numbers with this deviation.
std::vector<float> random_normal(int64_t count, double deviation, const std::string& stream);

// softmax(scale scores) v with ggml's operations. scores: [keys, queries, heads].
ggml_tensor* weighted(ggml_context* g, ggml_tensor* scores, ggml_tensor* v, double scale);
// Entry [j, i, head] of a product by distance [2 rows - 1, rows, heads]: its row T - 1 - i + j.
ggml_tensor* shifted(ggml_context* g, ggml_tensor* product, int64_t rows);

// FastConformer's block (NeMo, Parakeet): biases u and v, sinusoids by distance T - 1 down to
// -(T - 1), projected; Transformer-XL's shift.
std::unique_ptr<Layer> make_conformer_layer(const LayerSizes& sizes);
// DeBERTa v2's and v3's block: 256 buckets, c2p and p2c by the layer's own projections.
std::unique_ptr<Layer> make_deberta_layer(const LayerSizes& sizes);

}  // namespace sextant::bench
