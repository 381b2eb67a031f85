// sam: trained vectors by vertical and by horizontal distance on a grid, multiplied with the query.
//
// Li, Mao, Girshick and He 2022 (ViTDet, arXiv 2203.16527) and Kirillov et al. 2023 (Segment
// Anything, arXiv 2304.02643), after MViTv2 (2112.01526):
//
//   s_ij = q_i.k_j / sqrt(d) + q_i.Rh[y_i - y_j + H - 1] + q_i.Rw[x_i - x_j + W - 1]
//
// The query of the last two terms is not scaled. Each layer has its own tables of 2 H - 1 and
// 2 W - 1 rows, shared by the heads. On a grid of another size than that of the tables, their rows
// are interpolated linearly, as the official code does (get_rel_pos of segment-anything and of
// transformers' models sam, sam_hq, vitdet, got_ocr2 and others).
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_linear1d.h>

#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/grid.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

// The rows of a table for distances on an axis of `size` places, [2 size - 1, head_dim].
at::Tensor resized(const at::Tensor& table, int64_t size) {
  const int64_t rows = 2 * size - 1;
  if (table.size(0) == rows) return table;
  return at::upsample_linear1d(table.transpose(0, 1).unsqueeze(0), {rows},
                               /*align_corners=*/false)
      .squeeze(0)
      .transpose(0, 1);
}

class Sam final : public Method {
 public:
  Sam(const ModelShape& shape, const Grid& grid, const Grid& tables)
      : shape_(shape), grid_(grid), tables_(tables) {}

  // Both tables of each layer.
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (int64_t n = 0; n < shape_.layers; ++n)
      for (const auto& [name, size] :
           {std::pair{"rel_pos_h", tables_.height}, {"rel_pos_w", tables_.width}})
        specs.push_back({.name = "layers." + std::to_string(n) + ".attn." + name,
                         .sizes = {2 * size - 1, shape_.head_dim}});
    return specs;
  }

  bool relative() const override { return false; }
  bool reads_rotary_positions() const override { return true; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const GridPositions positions = grid_positions("sam", layout, grid_);
    const auto both = parameters.subspan(static_cast<size_t>(2 * layer));
    const int64_t sizes[] = {grid_.height, grid_.width};
    std::vector<at::Tensor> rows;
    int64_t first = 0;  // row of the axis
    for (int64_t n = 0; n < 2; ++n) {
      MadeAxis made("sam", positions.queries_on(n), positions.keys_on(n));
      made.axis.on_query_rows =
          made.rows([&](int64_t distance) { return first + distance + sizes[n] - 1; });
      add_axis(operands, made.axis);
      rows.push_back(resized(both[static_cast<size_t>(n)], sizes[n]));
      first += 2 * sizes[n] - 1;
    }
    operands.axis_on_query = (at::cat(rows) / operands.scale).unsqueeze(0);
  }

 private:
  ModelShape shape_;
  Grid grid_, tables_;
};

std::unique_ptr<Method> make_sam(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("sam", json);
  const Grid grid = grid_option(options, "grid");
  return std::make_unique<Sam>(
      shape, grid, options.value("tables").is_null() ? grid : grid_option(options, "tables"));
}

}  // namespace

MethodInfo sam_method() {
  return {.name = "sam",
          .summary = "Trained vectors by distance on both axes of a grid (Li et al. 2022)",
          .formula = "s_ij = q_i . k_j / sqrt(d) + q_i . Rh[y_i - y_j] + q_i . Rw[x_i - x_j]",
          .defaults = R"({"grid": null, "tables": null})",
          .make = make_sam,
          .tests = {.options = R"({"grid": [820, 5]})"},
          .grid_option = "grid"};
}

}  // namespace sextant
