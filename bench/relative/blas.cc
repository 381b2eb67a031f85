#include "bench/relative/blas.h"

#include <algorithm>
#include <cmath>
#include <thread>

extern "C" {
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
void openblas_set_num_threads(int count);
}

namespace sextant::bench {
namespace {

constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;

// c [m, n] = a [m, k] b^T, b [n, k]
void multiply_transposed(int64_t m, int64_t n, int64_t k, const float* a, const float* b,
                         float* c) {
  const auto to_int = [](int64_t x) { return static_cast<int>(x); };
  cblas_sgemm(kRowMajor, kNoTrans, kTrans, to_int(m), to_int(n), to_int(k), 1, a, to_int(k), b,
              to_int(k), 0, c, to_int(n));
}

// softmax(scale x) in place.
void softmax(float* x, int64_t count, float scale) {
  float most = x[0];
  for (int64_t j = 1; j < count; ++j) most = std::max(most, x[j]);
  float sum = 0;
  for (int64_t j = 0; j < count; ++j) {
    x[j] = std::exp(scale * (x[j] - most));
    sum += x[j];
  }
  const float factor = 1 / sum;
  for (int64_t j = 0; j < count; ++j) x[j] *= factor;
}

// One head, in scratch memory of its thread.
class Head {
 public:
  Head(const RelativeLayer& layer, int64_t block) : layer_(layer), block_(block) {
    const int64_t n = layer.rows;
    scores_.resize(static_cast<size_t>(block * n));
    product_.resize(static_cast<size_t>(block * (layer.deberta ? layer.table_rows : n + block)));
    if (layer.deberta) of_keys_.resize(static_cast<size_t>(layer.table_rows * n));
  }

  void attend(int64_t head, std::vector<float>& out) {
    const int64_t n = layer_.rows, d = layer_.columns, at = head * n * d;
    const float *q = layer_.q.data() + at, *k = layer_.k.data() + at, *v = layer_.v.data() + at;
    const float* table = layer_.table.data() + head * layer_.table_rows * d;
    if (layer_.deberta)  // [table rows, keys], so that rows of scores read it forwards
      multiply_transposed(layer_.table_rows, n, d,
                          layer_.key_table.data() + head * layer_.table_rows * d, k,
                          of_keys_.data());
    for (int64_t first = 0; first < n; first += block_) {
      const int64_t count = std::min(block_, n - first);
      multiply_transposed(count, n, d, q + first * d, k, scores_.data());
      if (layer_.deberta) {
        multiply_transposed(count, layer_.table_rows, d, q + first * d, table, product_.data());
        for (int64_t i = 0; i < count; ++i) add_gathered(i, first);
      } else {
        // The distances of these queries: n + count - 1 rows of the table.
        const int64_t from = n - first - count, distances = n + count - 1;
        multiply_transposed(count, distances, d, layer_.q_with_v.data() + at + first * d,
                            table + from * d, product_.data());
        for (int64_t i = 0; i < count; ++i) {
          const float* shifted = product_.data() + i * distances + count - 1 - i;
          float* row = scores_.data() + i * n;
          for (int64_t j = 0; j < n; ++j) row[j] += shifted[j];
        }
      }
      for (int64_t i = 0; i < count; ++i) softmax(scores_.data() + i * n, n, layer_.scale);
      cblas_sgemm(kRowMajor, kNoTrans, kNoTrans, static_cast<int>(count), static_cast<int>(d),
                  static_cast<int>(n), 1, scores_.data(), static_cast<int>(n), v,
                  static_cast<int>(d), 0, out.data() + at + first * d, static_cast<int>(d));
    }
  }

 private:
  void add_gathered(int64_t i, int64_t first) {
    const int64_t n = layer_.rows;
    const int32_t* row_of = layer_.row_of.data() + n - 1 - (first + i);  // of key 0
    const float* of_query = product_.data() + i * layer_.table_rows;
    float* row = scores_.data() + i * n;
    for (int64_t j = 0; j < n; ++j) row[j] += of_query[row_of[j]] + of_keys_[row_of[j] * n + j];
  }

  const RelativeLayer& layer_;
  int64_t block_;
  std::vector<float> scores_, product_, of_keys_;
};

}  // namespace

void attend_by_blas(const RelativeLayer& layer, int64_t block, int threads,
                    std::vector<float>& out) {
  openblas_set_num_threads(1);
  const auto some_heads = [&](int thread) {
    Head head(layer, std::min(block, layer.rows));
    for (int64_t h = thread; h < layer.heads; h += threads) head.attend(h, out);
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(some_heads, thread);
  some_heads(0);
}

}  // namespace sextant::bench
