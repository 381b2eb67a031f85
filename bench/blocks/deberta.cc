#include <algorithm>
#include <cstdlib>

#include "bench/blocks/layer.h"
#include "sextant/base/error.h"

namespace sextant::bench {
namespace {

constexpr int64_t kBuckets = 256, kTableRows = 2 * kBuckets, kLongest = 512;

// The row of the table of relative embeddings for a distance (make_log_bucket_position of
// transformers 5.24, plus the span, within the table).
int32_t table_row(int64_t distance) {
  const int64_t half = kBuckets / 2, size = std::abs(distance);
  int64_t bucket = distance;
  if (size > half) {
    const double ratio = std::log(static_cast<double>(size) / static_cast<double>(half)) /
                         std::log(static_cast<double>(kLongest - 1) / static_cast<double>(half));
    const auto far = static_cast<int64_t>(std::ceil(ratio * static_cast<double>(half - 1))) + half;
    bucket = distance < 0 ? -far : far;
  }
  return static_cast<int32_t>(std::clamp<int64_t>(bucket + kBuckets, 0, kTableRows - 1));
}

// result[n, row, head] = product[rows_of[T - 1 - row + n], row, head], rows_of: of diagonals.
void gather(ggml_tensor* result, int thread, int threads, void* rows_of) {
  const ggml_tensor* product = result->src[0];
  const int64_t length = result->ne[1];
  for (int64_t n = thread; n < length * result->ne[2]; n += threads) {
    const int64_t row = n % length;
    const auto* from = reinterpret_cast<const float*>(
        static_cast<const char*>(product->data) + static_cast<size_t>(row) * product->nb[1] +
        static_cast<size_t>(n / length) * product->nb[2]);
    float* to = static_cast<float*>(result->data) + n * length;
    const int32_t* at = static_cast<const int32_t*>(rows_of) + length - 1 - row;
    for (int64_t j = 0; j < length; ++j) to[j] = from[at[j]];
  }
}

class DebertaLayer : public Layer {
 public:
  explicit DebertaLayer(const LayerSizes& of)
      : Layer(of, "deberta", true),
        table_(random_normal(kTableRows * of.width(), 1, "deberta/table")) {
    for (int64_t d = of.rows - 1; d > -of.rows; --d) rows_.push_back(table_row(d));
    reversed_.assign(rows_.rbegin(), rows_.rend());
  }

  std::vector<std::string> ways() const override {
    return {"deberta.cpp", "by distance", "Sextant"};
  }
  bool exact(const std::string&) const override { return true; }

 protected:
  ggml_tensor* attention(GgmlGraph& graph, const Projected& p, const std::string& way) override {
    ggml_context* g = graph.context();
    const int64_t rows = sizes.rows;
    const auto by_head = [&](ggml_tensor* t) { return ggml_permute(g, t, 0, 2, 1, 3); };
    const auto transposed = [&](ggml_tensor* t) {
      return ggml_cont(g, ggml_permute(g, t, 1, 0, 2, 3));
    };
    ggml_tensor *q = ggml_cont(g, by_head(p.q)), *k = ggml_cont(g, by_head(p.k));
    ggml_tensor* table = graph.constant(GGML_TYPE_F32, table_.data(), sizes.width(), kTableRows);
    ggml_tensor *to_keys = linear(graph, k_, table), *to_queries = linear(graph, q_, table);
    if (way == "Sextant") {
      const auto by_row = [&](ggml_tensor* t) {
        return by_head(ggml_reshape_3d(g, t, sizes.head_dim, sizes.heads, kTableRows));
      };
      terms_.on_query.rows = terms_.on_key.rows = rows_.data();
      op_.attention.sees = SEXTANT_ALL_KEYS;
      op_.attention.scale = scale();
      op_.attention.terms = &terms_;
      op_.on_query = by_row(to_keys);
      op_.on_key = by_row(to_queries);
      return made(sextant_ggml_attention(g, by_head(p.q), by_head(p.k), by_head(p.v), &op_));
    }
    ggml_tensor *c2p, *p2c;
    if (way == "deberta.cpp") {
      const auto gathered = [&](ggml_tensor* projected, std::vector<int32_t>& of, ggml_tensor* x) {
        projected = ggml_reshape_3d(g, projected, sizes.head_dim, sizes.heads, kTableRows);
        ggml_tensor* product = ggml_mul_mat(g, by_head(projected), x);
        return ggml_custom_4d(g, GGML_TYPE_F32, rows, rows, sizes.heads, 1, &product, 1, gather,
                              GGML_N_TASKS_MAX, of.data());
      };
      c2p = gathered(to_keys, rows_, q);
      p2c = transposed(gathered(to_queries, reversed_, k));
    } else if (way == "by distance") {
      const auto product = [&](ggml_tensor* projected, const std::vector<int32_t>& of,
                               ggml_tensor* x) {
        ggml_tensor* index = graph.constant(GGML_TYPE_I32, of.data(), sizes.distances(), 1);
        ggml_tensor* laid_out = ggml_reshape_3d(g, ggml_get_rows(g, projected, index),
                                                sizes.head_dim, sizes.heads, sizes.distances());
        return shifted(g, ggml_mul_mat(g, by_head(laid_out), x), rows);
      };
      c2p = product(to_keys, rows_, q);
      p2c = transposed(product(to_queries, reversed_, k));
    } else {
      fail("bench: way: expected one of this block, but got " + way);
    }
    ggml_tensor* scores = ggml_mul_mat(g, k, q);
    return weighted(g, ggml_add(g, ggml_add(g, scores, c2p), p2c), p.v, scale());
  }

  double add_positions(int64_t head, const std::vector<double>& q, const std::vector<double>& k,
                       std::vector<double>& scores) const override {
    const auto rows = static_cast<size_t>(sizes.rows), dim = static_cast<size_t>(sizes.head_dim),
               width = static_cast<size_t>(sizes.width());
    if (to_keys_.empty()) {
      const std::vector<double> table(table_.begin(), table_.end());
      to_keys_ = linear(k_, table), to_queries_ = linear(q_, table);
    }
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < rows; ++j) {
        const size_t row = static_cast<size_t>(rows_[rows - 1 - i + j]);
        for (size_t n = 0; n < dim; ++n) {
          const size_t c = static_cast<size_t>(head) * dim + n;
          scores[i * rows + j] += q[i * width + c] * to_keys_[row * width + c] +
                                  k[j * width + c] * to_queries_[row * width + c];
        }
      }
    return scale();
  }

 private:
  double scale() const { return 1 / std::sqrt(3 * static_cast<double>(sizes.head_dim)); }

  sextant_terms terms_ = {sizeof terms_};
  std::vector<float> table_;                          // [table rows, width]
  std::vector<int32_t> rows_, reversed_;              // of diagonals T - 1 down to -(T - 1), and up
  mutable std::vector<double> to_keys_, to_queries_;  // of the reference
};

}  // namespace

std::unique_ptr<Layer> make_deberta_layer(const LayerSizes& sizes) {
  return std::make_unique<DebertaLayer>(sizes);
}

}  // namespace sextant::bench
