// A kind of attention in two forms: as operands of the score equation, and as tensor operations of
// libtorch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/attention/ggml_peer.h"
#include "sextant/attention/attend.h"
#include "sextant/attention/score.h"
#include "sextant/base/executor.h"

namespace sextant::bench {

struct Sizes {
  int64_t batch = 1, heads = 8, length = 2048, head_dim = 64;
  int64_t group = 1;     // query heads per key head; there are `heads` key heads
  int64_t cache = 8192;  // keys of the decoding kinds
  int64_t window = 0;    // of the kinds with a window; 0: an eighth of the length
  // The type of q, k and v in memory: float32, bfloat16 or float16. All else is float32.
  at::ScalarType dtype = at::kFloat;
  // q, k, v and the result are [batch, rows, heads, columns], as in models, not heads before rows.
  bool rows_first = false;
  bool as_cached = false;  // in huge pages, like the keys and values of KvCache
};

// Where a table, its row map and its gradient belong.
struct TablePlace {
  View<const float> Operands<float>::*rows;
  std::span<const int32_t> RowMaps::*row_at;
  AnyView<float> ScoreGrad<float>::*grad;
};
inline constexpr TablePlace kBias = {&Operands<float>::bias, &RowMaps::bias,
                                     &ScoreGrad<float>::bias};
inline constexpr TablePlace kOnQuery = {&Operands<float>::on_query, &RowMaps::on_query,
                                        &ScoreGrad<float>::on_query};
inline constexpr TablePlace kOnKey = {&Operands<float>::on_key, &RowMaps::on_key,
                                      &ScoreGrad<float>::on_key};
inline constexpr TablePlace kOnValue = {&Operands<float>::on_value, &RowMaps::on_value,
                                        &ScoreGrad<float>::on_value};

// Owns the operands of its score, which points into the object; it is therefore not movable.
class Workload {
 public:
  // The queries are the last of `keys` positions; all inputs are random. `visible` returns the
  // range of keys that a position sees.
  Workload(std::string name, const Sizes& sizes, int64_t queries, int64_t keys,
           const std::function<KeyRange(int64_t position)>& visible);
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  const std::string& name() const { return name_; }
  int64_t queries() const { return q.size(2); }
  int64_t keys() const { return k.size(2); }
  // The number of visible query-key pairs, over all heads and batch entries.
  double pairs() const;
  // The bytes of q, k, v and the result, which a pass reads and writes at least.
  double least_bytes() const;

  // Adds a random table [heads, rows, columns] to the score, with a gradient if `trained`. `map`:
  // the row of a distance; null: row = diagonal.
  at::Tensor add_table(const TablePlace& place, int64_t heads, int64_t rows, int64_t columns,
                       const std::function<int64_t(int64_t distance)>& map = nullptr,
                       bool trained = true);
  // Adds a query bias, [batch, heads, queries, diagonals], with a gradient.
  at::Tensor add_query_bias();
  // Rotates both sides of a sweep at their positions.
  void rotate(size_t sweep, const Rotation& rotation);
  // Splits the visible keys: a second sweep covers distances from `window` on, with queries rotated
  // by `window` positions and unrotated keys.
  void rectify(const Rotation& rotation, int64_t window);
  // The same, but distances beyond the window continue to grow, slower by a factor.
  void leak(const Spectrum& spectrum, int64_t window, int64_t factor);

  // The passes reuse their output tensors in the next call, as a program with repeated calls does.
  void ours_forward(const Backend& backend, const Executor& executor);
  // Uses the result of the forward pass before it; computes the gradients of all trained tensors.
  void ours_backward(const Backend& backend, const Executor& executor);
  void eager_forward();
  void eager_backward();
  void ggml_forward(int threads);  // the first call fixes the number of threads

  // Frees the results and gradients of all sides.
  void clear();

  // The largest difference between ours and eager, relative to the largest magnitude, of the result
  // and (after both backward passes) of all gradients.
  double disagreement() const;
  // The same between our result and ggml's.
  double disagreement_with_ggml() const;

  // Whether any of its sweeps rotates queries or keys.
  bool is_rotated() const;

  bool has_backward = true;
  bool bound_by_memory = false;  // few operations for each byte of the keys
  // [batch, heads, rows, head_dim], float32, with values that are exact in sizes.dtype.
  at::Tensor q, k, v, d_out;
  // Prepares the constant data of the eager side, and returns a function that computes the result
  // from q, k, v and tables.
  using Forward = std::function<at::Tensor()>;
  std::function<Forward()> eager;
  // The terms for ggml, without q, k, v and the scale; null for kinds that ggml has no operators
  // for.
  std::function<GgmlAttention()> ggml;
  Score<float> score;

 private:
  // A view of x in sizes.dtype, the type that the score reads.
  AnyView<const float> stored(const at::Tensor& x);
  // Cuts the key ranges at the window and returns the ranges of the far keys.
  const KeyRange* split(int64_t window);

  struct Trained {
    at::Tensor tensor, gradient;
    AnyView<float> ScoreGrad<float>::*place;
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

// All kinds, in the order of the table.
struct Kind {
  std::string name, about;
  std::unique_ptr<Workload> (*make)(const Sizes& sizes);
  std::string beside = {};  // the plain kind of the same mask; empty: none
  bool decodes = false;     // the number of keys is Sizes::cache, not the length
};
const std::vector<Kind>& kinds();

}  // namespace sextant::bench
