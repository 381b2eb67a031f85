// One kind of attention, said twice: as operands of the score equation, and as the tensor
// operations that one would write with libtorch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/attention/ggml_peer.h"
#include "sextant/attention/attend.h"
#include "sextant/attention/score.h"
#include "sextant/base/executor.h"

namespace sextant::bench {

struct Sizes {
  int64_t batch = 1, heads = 8, length = 2048, head_dim = 64;
  int64_t group = 1;     // query heads that share one of the `heads` key heads
  int64_t cache = 8192;  // keys of the decoding cases
  int64_t window = 0;    // of the kinds that have one; 0: an eighth of the length
  // How q, k and v lie in memory: float32, bfloat16 or float16. All else is float32.
  at::ScalarType dtype = at::kFloat;
  // As models lay out q, k, v and what comes back: [batch, rows, heads, columns], not heads before
  // rows.
  bool rows_first = false;
  bool as_cached = false;  // in huge pages, as KvCache has its keys and values
};

// Owns what its score points to, and stays where it is.
class Workload {
 public:
  // The last `queries` of `keys` positions; all inputs are random. `visible` gives the run of keys
  // that a position sees.
  Workload(std::string name, const Sizes& sizes, int64_t queries, int64_t keys,
           const std::function<KeyRange(int64_t position)>& visible);
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  const std::string& name() const { return name_; }
  int64_t queries() const { return q.size(2); }
  int64_t keys() const { return k.size(2); }
  // Query-key pairs that are seen, over all heads and batch entries.
  double pairs() const;
  // Of q, k, v and the result: what a pass must read and write at least.
  double least_bytes() const;

  // A random table [heads, rows, columns] that asks for a gradient if `trained`; its view is what
  // the score wants. `map`: row of a distance; null: row = diagonal.
  at::Tensor add_table(Table<float> Score<float>::*place, View<float> ScoreGrad<float>::*gradient,
                       int64_t heads, int64_t rows, int64_t columns,
                       const std::function<int64_t(int64_t distance)>& map = nullptr,
                       bool trained = true);
  // The same for a number per batch entry, head, query and diagonal; a query bias asks for a
  // gradient.
  at::Tensor add_query_bias();
  // Turns both sides of a sweep at their positions.
  void rotate(size_t sweep, const Rotation& rotation);
  // Splits what is seen: a second sweep over the keys at `window` and more, its queries turned by
  // `window` positions, its keys not at all.
  void rectify(const Rotation& rotation, int64_t window);
  // The same, but distances beyond the window grow on, slower by a factor.
  void leak(const Spectrum& spectrum, int64_t window, int64_t factor);

  // What they write is kept for the next call, as a program that calls them again and again keeps
  // it.
  void ours_forward(const Backend& backend, const Executor& executor);
  // From the result of the forward pass before; gradients of everything that is trained.
  void ours_backward(const Backend& backend, const Executor& executor);
  void eager_forward();
  void eager_backward();
  void ggml_forward(int threads);  // those that were asked for first

  // Drops results and gradients of both.
  void clear();

  // The greatest difference between the two, relative to the greatest number, over the result and
  // (if both have been backward) all gradients.
  double disagreement() const;
  // The same of ggml's result.
  double disagreement_with_ggml() const;

  // Whether any of its sweeps turns queries or keys.
  bool is_turned() const;

  bool has_backward = true;
  bool bound_by_memory = false;  // few operations for each byte of the keys
  // [batch, heads, rows, head_dim], float32, of numbers that sizes.dtype has.
  at::Tensor q, k, v, d_out;
  // Makes what eager needs once, and gives what computes the result from q, k, v and tables.
  using Forward = std::function<at::Tensor()>;
  std::function<Forward()> eager;
  // What ggml has operators for: its terms, without q, k, v and the scale. Of other kinds null.
  std::function<GgmlAttention()> ggml;
  Score<float> score;

 private:
  // x as the score reads it, in sizes.dtype.
  AnyView<const float> stored(const at::Tensor& x);
  // Cuts the runs at the window; those of the far keys are returned.
  const KeyRange* split(int64_t window);

  struct Trained {
    at::Tensor tensor, gradient;
    View<float> ScoreGrad<float>::*place;
  };

  std::string name_;
  at::ScalarType dtype_;
  std::vector<at::Tensor> narrow_;
  std::deque<std::vector<KeyRange>> key_ranges_;
  std::deque<std::vector<int32_t>> maps_;
  std::deque<Rotation> rotations_;
  std::deque<std::vector<Turns>> offsets_;
  std::vector<int64_t> positions_, zeros_;
  std::vector<at::Tensor> tables_;
  std::vector<Trained> trained_;
  at::Tensor out_, lse_, eager_out_;
  Forward eager_, ggml_;
  at::Tensor ggml_out_;
};

View<float> view(const at::Tensor& x);  // of 4 dimensions

// Every kind there is, in the order of the table.
struct Kind {
  std::string name, about;
  std::unique_ptr<Workload> (*make)(const Sizes& sizes);
  std::string beside = {};  // the kind of the same mask without what is special here; or none
  bool decodes = false;     // its size is that of the cache, whatever the length
};
const std::vector<Kind>& kinds();

}  // namespace sextant::bench
