// nezha: Shaw's vectors by clipped distance, on keys and values, as fixed sinusoids.
//
// Wei et al. 2019 (arXiv 1909.00204), with r = clip(j - i, -K, K):
//
//   s_ij = q_i.(k_j + a_r) / sqrt(d),   o_i = sum_j p_ij (v_j + a_r)
//   a_r[2m] = sin(t / 10000^(2m/d)),    a_r[2m + 1] = cos(t / 10000^(2m/d))
//
// t is r in the paper, flavour "paper". All code (Huawei's TensorFlow and PyTorch, Hugging Face)
// counts the rows of its table from 0 and computes the angle from the row: t = r + K, flavour
// "code". No trained projection follows that could convert one into the other; checkpoints need
// "code".
//
// One table serves keys and values, all heads and all layers; there are no parameters. All
// distances beyond K on one side share a row, so any length works; Hugging Face's buffer ends at
// max_position_embeddings.
#include <nlohmann/json_fwd.hpp>

#include "sextant/position/row_map.h"
#include "sextant/position/sinusoid.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class Nezha final : public Method {
 public:
  Nezha(const Sinusoid& sinusoid, int64_t clip, bool shifted)
      : clip_(clip),
        width_(sinusoid.width()),
        rows_(sinusoid.rows(shifted ? 0 : -clip, 2 * clip + 1)) {}

  bool adds_to_values() const override { return true; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t, Parameters) const override {
    const TableOperand table = {
        .rows = tensor_of(rows_, {1, 2 * clip_ + 1, width_}, operands.q).to(operands.q.options()),
        .row_at = tensor_of(clipped_row_map(layout.diagonals(), clip_, RowOrder::kKeyMinusQuery))};
    operands.on_query = table;
    operands.on_value = table;
  }

 private:
  int64_t clip_, width_;
  std::vector<double> rows_;  // [2 clip + 1, width]
};

std::unique_ptr<Method> make_nezha(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("nezha", json);
  return std::make_unique<Nezha>(Sinusoid({.width = shape.head_dim}),
                                 options.integer("max_relative_position", 0, int64_t{1} << 20),
                                 options.choice("flavour", {"code", "paper"}) == 0);
}

}  // namespace

MethodInfo nezha_method() {
  return {.name = "nezha",
          .summary = "Fixed sinusoids by clipped distance on keys and values (Wei et al. 2019)",
          .formula =
              "r = clip(j - i, -K, K); s_ij = q_i . (k_j + a[r]) / sqrt(d); o_i = sum_j "
              "softmax_j(s_ij) * (v_j + a[r])",
          .defaults = R"({"max_relative_position": 64, "flavour": "code"})",
          .make = make_nezha};
}

}  // namespace sextant
