#include <algorithm>

#include "bench/blocks/layer.h"
#include "sextant/base/error.h"

namespace sextant::bench {
namespace {

class ConformerLayer : public Layer {
 public:
  explicit ConformerLayer(const LayerSizes& of)
      : Layer(of, "conformer", false),
        position_(random_layer("conformer/position", false)),
        u_(random_normal(of.width(), 0.5, "conformer/u")),
        v_bias_(random_normal(of.width(), 0.5, "conformer/v")) {
    for (int64_t d = of.rows - 1; d > -of.rows; --d)
      for (int64_t c = 0; c < of.width() / 2; ++c) {
        const double angle =
            static_cast<double>(d) *
            std::pow(10000.0, -2.0 * static_cast<double>(c) / static_cast<double>(of.width()));
        sinusoids_.push_back(static_cast<float>(std::sin(angle)));
        sinusoids_.push_back(static_cast<float>(std::cos(angle)));
      }
  }

  std::vector<std::string> ways() const override {
    return {"whisper.cpp", "CrispASR", "CrispASR, flash", "Sextant"};
  }
  bool exact(const std::string& way) const override { return way != "CrispASR, flash"; }

 protected:
  ggml_tensor* attention(GgmlGraph& graph, const Projected& p, const std::string& way) override {
    ggml_context* g = graph.context();
    const int64_t width = sizes.width(), rows = sizes.rows;
    ggml_tensor* sinusoids =
        graph.constant(GGML_TYPE_F32, sinusoids_.data(), width, sizes.distances());
    ggml_tensor* r = ggml_reshape_3d(g, linear(graph, position_, sinusoids), sizes.head_dim,
                                     sizes.heads, sizes.distances());
    const auto bias = [&](const std::vector<float>& values) {
      return graph.constant(GGML_TYPE_F32, values.data(), sizes.head_dim, sizes.heads);
    };
    const auto by_head = [&](ggml_tensor* t) { return ggml_permute(g, t, 0, 2, 1, 3); };
    const double scale = 1 / std::sqrt(static_cast<double>(sizes.head_dim));
    if (way == "Sextant") {
      op_.attention.sees = SEXTANT_ALL_KEYS;
      return made(sextant_ggml_conformer(g, by_head(p.q), by_head(p.k), by_head(p.v), bias(u_),
                                         bias(v_bias_), by_head(r), &op_));
    }
    ggml_tensor* with_u = by_head(ggml_add(g, p.q, bias(u_)));
    ggml_tensor* with_v = by_head(ggml_add(g, p.q, bias(v_bias_)));
    if (way == "whisper.cpp") {
      ggml_tensor* scores = ggml_mul_mat(g, by_head(p.k), with_u);
      ggml_tensor* product = ggml_mul_mat(g, ggml_cont(g, by_head(r)), ggml_cont(g, with_v));
      return weighted(g, ggml_add(g, scores, by_steps(g, product, rows)), p.v, scale);
    }
    ggml_tensor* term = shifted(g, ggml_mul_mat(g, by_head(r), ggml_cont(g, with_v)), rows);
    if (way == "CrispASR, flash") {
      ggml_tensor* mask = ggml_scale(g, ggml_cont(g, term), static_cast<float>(scale));
      return ggml_flash_attn_ext(g, with_u, by_head(p.k), by_head(p.v),
                                 ggml_cast(g, mask, GGML_TYPE_F16), static_cast<float>(scale), 0,
                                 0);
    }
    if (way != "CrispASR") fail("bench: way: expected one of this block, but got " + way);
    ggml_tensor* scores = ggml_mul_mat(g, by_head(p.k), ggml_cont(g, with_u));
    return weighted(g, ggml_add(g, scores, term), p.v, scale);
  }

  double add_positions(int64_t head, const std::vector<double>& q, const std::vector<double>& k,
                       std::vector<double>& scores) const override {
    const auto rows = static_cast<size_t>(sizes.rows), dim = static_cast<size_t>(sizes.head_dim),
               width = static_cast<size_t>(sizes.width());
    if (r_.empty()) r_ = linear(position_, {sinusoids_.begin(), sinusoids_.end()});
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < rows; ++j)
        for (size_t n = 0; n < dim; ++n) {
          const size_t c = static_cast<size_t>(head) * dim + n;
          scores[i * rows + j] += static_cast<double>(u_[c]) * k[j * width + c] +
                                  (q[i * width + c] + static_cast<double>(v_bias_[c])) *
                                      r_[(rows - 1 - i + j) * width + c];
        }
    return 1 / std::sqrt(static_cast<double>(dim));
  }

 private:
  // The shift of Transformer-XL's paper: with a column of zeros in front and read in rows of
  // `rows`, all rows but the first, read in rows of the old length.
  static ggml_tensor* by_steps(ggml_context* g, ggml_tensor* product, int64_t rows) {
    ggml_tensor* padded = ggml_roll(g, ggml_pad(g, product, 1, 0, 0, 0), 1, 0, 0, 0);
    padded = ggml_reshape_3d(g, padded, rows, product->ne[0] + 1, product->ne[2]);
    return ggml_cont(g, ggml_view_3d(g, padded, rows, rows, product->ne[2],
                                     static_cast<size_t>(product->ne[0]) * padded->nb[0],
                                     padded->nb[2], padded->nb[1]));
  }

  Linear position_;
  std::vector<float> u_, v_bias_, sinusoids_;  // [width], [width], [distances, width]
  mutable std::vector<double> r_;              // of the reference
};

}  // namespace

std::unique_ptr<Layer> make_conformer_layer(const LayerSizes& sizes) {
  return std::make_unique<ConformerLayer>(sizes);
}

}  // namespace sextant::bench
