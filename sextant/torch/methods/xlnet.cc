// xlnet: Transformer-XL's distances in both directions, and whether two rows share a segment.
//
// Yang et al. 2019 (arXiv 1906.08237), zihangdai/xlnet and Hugging Face:
//
//   s_ij = ( (q_i + u).k_j + (q_i + v).W R[i-j] + (q_i + s).e[segment_i != segment_j] ) / sqrt(d)
//
// R is that of transformer-xl, width C; u, v, s are r_w_bias, r_r_bias, r_s_bias [heads, head_dim],
// one of each per layer (untie_r, all released models) or shared; W is `r` and e is `seg_embed`,
// always one per layer. clamp_len > 0 clips distances in both directions. The mask determines
// whether distances of both signs occur ("bi") or not ("uni"); nothing else depends on it. The
// code's bi_data computes the second half of a batch backwards, with -(i-j) for i-j: attend to that
// half with "reversed".
//
// "segments" needs the layout's segments. A key's segment is one-hot in further columns of the key;
// the query's further columns hold (q_i + s).e[0] for its own segment and (q_i + s).e[1] for the
// others: one product.
//
// Content and query stream share all parameters and differ in q and in the mask (Layout::mask).
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/where.h>

#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/relative_vectors.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

// One-hot segment ids, bool [batch, 1, rows, ids].
at::Tensor one_hot(const at::Tensor& segments, const at::Tensor& ids) {
  return segments.unsqueeze(2).eq(ids).unsqueeze(1);
}

// The products x_i.e, [batch, heads, queries, 1], with e [heads, head_dim].
at::Tensor product(const at::Tensor& x, const at::Tensor& e) {
  return at::matmul(x, e.unsqueeze(2));
}

void check_segments(const char* field, const at::Tensor& segments, int64_t batch, int64_t rows) {
  const std::string expected = std::string("xlnet: ") + field + ": expected [" +
                               std::to_string(batch) + ", " + std::to_string(rows) +
                               "] integers, as option segments is on, but got ";
  if (!segments.defined()) fail(expected + "none");
  if (segments.dim() != 2 || segments.size(0) != batch || segments.size(1) != rows ||
      segments.scalar_type() != at::kLong)
    fail(expected + "a tensor of " + std::to_string(segments.dim()) + " dimensions and " +
         std::to_string(segments.numel()) + " elements");
}

// Appends segment columns to q and k. query: q before u was added; s: [heads, head_dim]; e: [2,
// heads, head_dim].
void place_segments(TensorOperands& operands, const Layout& layout, const at::Tensor& query,
                    const at::Tensor& s, const at::Tensor& e) {
  const at::Tensor& k = operands.k;
  check_segments("query_segments", layout.query_segments, query.size(0), query.size(2));
  check_segments("key_segments", layout.key_segments, k.size(0), k.size(2));
  const at::Tensor of_queries = layout.query_segments.to(k.device());
  const at::Tensor of_keys = layout.key_segments.to(k.device());
  const at::Tensor sorted = std::get<0>(at::sort(of_keys.flatten()));
  const at::Tensor ids = std::get<0>(at::unique_consecutive(sorted));
  const at::Tensor biased = query + s.unsqueeze(1);
  const at::Tensor on_query = at::where(one_hot(of_queries, ids), product(biased, e.select(0, 0)),
                                        product(biased, e.select(0, 1)));
  const at::Tensor on_key = one_hot(of_keys, ids).to(k.options());
  operands.q = at::cat({operands.q, on_query}, 3);
  operands.k = at::cat({k, on_key.expand({-1, k.size(1), -1, -1})}, 3);
}

struct XlnetOptions {
  bool untied = true, segments = false, reversed = false;
  int64_t clamp = 0;  // 0: none
  double init_std = 0;
};

class Xlnet final : public Method {
 public:
  Xlnet(const ModelShape& shape, const XlnetOptions& options)
      : shape_(shape),
        options_(options),
        sinusoids_({.width = shape.width, .layout = SinusoidLayout::kConcatenated}) {}

  bool changes_keys() const override { return options_.segments; }

  // u, v and, with segments, s, of each layer or shared; then W and, with segments, e of each
  // layer.
  std::vector<ParameterSpec> parameters() const override {
    const int64_t heads = shape_.heads, head_dim = shape_.head_dim;
    std::vector<ParameterSpec> specs;
    const auto add = [&](const char* name, const std::vector<int64_t>& sizes, bool untied) {
      for (int64_t n = 0; n < (untied ? shape_.layers : 1); ++n)
        specs.push_back(ParameterSpec::normal(
            (untied ? "layer." + std::to_string(n) + ".rel_attn." : "") + name, sizes,
            options_.init_std));
    };
    add("r_w_bias", {heads, head_dim}, options_.untied);
    add("r_r_bias", {heads, head_dim}, options_.untied);
    if (options_.segments) add("r_s_bias", {heads, head_dim}, options_.untied);
    const size_t first_matrix = specs.size();
    add("r", {shape_.width, heads, head_dim}, true);
    for (size_t n = first_matrix; n < specs.size(); ++n) specs[n].weight_decay = true;
    if (options_.segments) add("seg_embed", {2, heads, head_dim}, true);
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const auto next = [&](bool untied) -> const at::Tensor& {
      const auto count = untied ? static_cast<size_t>(shape_.layers) : 1;
      const at::Tensor& tensor = of_layer(parameters.first(count), untied ? layer : 0);
      parameters = parameters.subspan(count);
      return tensor;
    };
    const at::Tensor &u = next(options_.untied), &v = next(options_.untied);
    const at::Tensor s = options_.segments ? next(options_.untied) : at::Tensor();
    const at::Tensor query = operands.q;
    place_with_biases(operands, table(operands, layout, next(true)), u, v);
    if (options_.segments)
      place_segments(operands, layout, query, s, next(true));
    else if (layout.query_segments.defined() || layout.key_segments.defined())
      fail("xlnet: segments: expected true, as rows have segments, but got false");
  }

 private:
  // Projected rows by distance: [heads, R, head_dim].
  TableOperand table(const TensorOperands& operands, const Layout& layout,
                     const at::Tensor& w) const {
    const int64_t far = options_.clamp > 0 ? options_.clamp : std::numeric_limits<int64_t>::max();
    const ClippedDistances distances = clipped_distances(layout.diagonals(), -far, far);
    const at::Tensor rows = sinusoids_.rows(distances, options_.reversed ? -1 : 1, operands.q);
    return {.rows = at::matmul(rows, w.permute({1, 0, 2})), .row_at = distances.row_at};
  }

  ModelShape shape_;
  XlnetOptions options_;
  SinusoidTable sinusoids_;
};

std::unique_ptr<Method> make_xlnet(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("xlnet", json);
  return std::make_unique<Xlnet>(
      shape, XlnetOptions{.untied = options.flag("untie_r"),
                          .segments = options.flag("segments"),
                          .reversed = options.flag("reversed"),
                          .clamp = options.integer("clamp_len", -1, int64_t{1} << 40),
                          .init_std = options.number("init_std", 0, 1e6)});
}

}  // namespace

MethodInfo xlnet_method() {
  return {.name = "xlnet",
          .summary = "Transformer-XL's distances both ways, relative segments (Yang et al. 2019)",
          .formula =
              "s_ij = ( (q_i + u) . k_j + (q_i + v) . W R[i - j] + (q_i + s) . e[segment_i != "
              "segment_j] ) / sqrt(d)",
          .defaults = R"({"untie_r": true, "clamp_len": -1, "segments": false, "reversed": false,
                          "init_std": 0.02})",
          .make = make_xlnet};
}

}  // namespace sextant
