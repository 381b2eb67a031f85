// layoutlm: trained biases by bucket of the distance in the text and of both distances on the page.
//
// Xu et al. 2020 (LayoutLMv2, arXiv 2012.14740) and Huang et al. 2022 (LayoutLMv3, 2204.08387):
//
//   s_ij = q_i.k_j / sqrt(d) + b[bucket(j - i), h] + b_x[bucket2(x_j - x_i), h]
//                                                  + b_y[bucket2(y_j - y_i), h]
//
// with T5's buckets in both directions; x and y are the left and bottom edges of a token's box, 0
// to 1000. All layers share the tables. LayoutLMv3 divides the three biases by sqrt(d) too
// ("flavour": "v3", LayoutLMv3SelfAttention in transformers); LayoutLMv2 adds them as they are.
// Rotary positions of the layout are those of the boxes, [x, y]. With a "grid", whose vertical axis
// is y, rows without positions are its places; otherwise they are an error.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "sextant/base/error.h"
#include "sextant/position/row_map.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/grid.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class LayoutLm final : public Method {
 public:
  LayoutLm(int64_t heads, const T5Buckets& text, const T5Buckets& page, std::optional<Grid> grid,
           bool scales)
      : heads_(heads), text_(text), page_(page), grid_(grid), scales_(scales) {}

  std::vector<ParameterSpec> parameters() const override {
    const auto table = [&](const char* name, const T5Buckets& buckets) {
      return ParameterSpec::normal(name, {heads_, buckets.buckets()}, 0.02);
    };
    return {table("encoder.rel_pos_bias.weight", text_),
            table("encoder.rel_pos_x_bias.weight", page_),
            table("encoder.rel_pos_y_bias.weight", page_)};
  }

  bool relative() const override { return false; }
  bool reads_rotary_positions() const override { return true; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t,
             Parameters parameters) const override {
    const double factor = scales_ ? operands.scale : 1;
    operands.bias = {.rows = parameters[0] * factor,
                     .row_at = tensor_of(row_map(layout.diagonals(), text_))};
    const bool given = has_positions("layoutlm", layout);
    if (!given && !grid_)
      fail(
          "layoutlm: query_positions, key_positions: expected boxes, [1 or batch, 2, rows], as "
          "there is no grid, but got none");
    const GridPositions positions =
        given ? GridPositions{query_rotary_positions(layout, 2), key_rotary_positions(layout, 2)}
              : grid_positions("layoutlm", layout, *grid_);
    for (int64_t n = 0; n < 2; ++n) {  // x, y
      const int64_t axis = given ? n : 1 - n;
      MadeAxis made("layoutlm", positions.queries_on(axis), positions.keys_on(axis));
      made.axis.bias_rows =
          made.rows([&](int64_t distance) { return n * page_.buckets() + page_.bucket(distance); });
      add_axis(operands, made.axis);
    }
    operands.axis_bias = at::cat({parameters[1], parameters[2]}, 1) * factor;
  }

 private:
  int64_t heads_;
  T5Buckets text_, page_;
  std::optional<Grid> grid_;
  bool scales_;
};

std::unique_ptr<Method> make_layoutlm(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("layoutlm", json);
  const auto buckets = [&](const char* count, const char* farthest) {
    return T5Buckets({.buckets = options.integer(count, 4, int64_t{1} << 20),
                      .max_distance = options.integer(farthest, 2, (int64_t{1} << 31) - 1)});
  };
  std::optional<Grid> grid;
  if (!options.value("grid").is_null()) grid = grid_option(options, "grid");
  return std::make_unique<LayoutLm>(shape.heads, buckets("buckets", "max_distance"),
                                    buckets("page_buckets", "max_page_distance"), grid,
                                    options.choice("flavour", {"v2", "v3"}) == 1);
}

}  // namespace

MethodInfo layoutlm_method() {
  return {.name = "layoutlm",
          .summary = "Biases by bucket in the text and on the page (Xu et al. 2020)",
          .formula =
              "s_ij = q_i . k_j / sqrt(d) + b[bucket(j - i)] + bx[bucket2(x_j - x_i)] + "
              "by[bucket2(y_j - y_i)]",
          .defaults = R"({"buckets": 32, "max_distance": 128, "page_buckets": 64,
                          "max_page_distance": 256, "flavour": "v3", "grid": null})",
          .make = make_layoutlm,
          .tests = {.options = R"({"grid": [820, 5]})"},
          .grid_option = "grid"};
}

}  // namespace sextant
