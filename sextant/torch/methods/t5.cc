// t5: a trained bias per head and bucket of distances is added to the score.
//
// Raffel et al. 2019 (arXiv 1910.10683): s_ij = q_i.k_j + b[bucket(j - i), h]. Each near distance
// has its own bucket, far distances share logarithmic buckets (sextant/position/buckets.h), and
// everything from about max_distance on shares the last. One table serves all layers of a stack
// (T5, mT5), or each layer has its own (umT5: per_layer).
//
// There is no 1/sqrt(d): T5 initialises W_q with small values instead. Models that do not need
// "scaled": true. The table learns at ten times the rate of matrices: at the common rate it stays
// too small for most of a short training, and T5 then fails past the training length (after ten
// minutes of training, 8 times the length costs 0.84 nats per character instead of 0.03).
#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sextant/position/row_map.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

struct T5Options {
  int64_t tables = 1, heads = 1;
  double init_std = 1;
  bool scaled = false;
};

class T5 final : public Method {
 public:
  // With both sets of buckets the layout's mask selects one; a single set serves any mask.
  T5(const T5Options& options, std::optional<T5Buckets> causal,
     std::optional<T5Buckets> bidirectional)
      : options_(options), causal_(std::move(causal)), bidirectional_(std::move(bidirectional)) {}

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (int64_t n = 0; n < options_.tables; ++n) {
      const std::string block = options_.tables > 1 ? "block." + std::to_string(n) + "." : "";
      specs.push_back({.name = block + "relative_attention_bias.weight",
                       .sizes = {(causal_ ? causal_ : bidirectional_)->buckets(), options_.heads},
                       .init = ParameterSpec::Init::kNormal,
                       .init_high = options_.init_std,
                       .learning_rate_scale = 10});
    }
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const bool use_causal = causal_ && (layout.causal || !bidirectional_);
    const T5Buckets& buckets = use_causal ? *causal_ : *bidirectional_;
    const at::Tensor& table = of_layer(parameters, options_.tables > 1 ? layer : 0);
    operands.bias = {.rows = table.transpose(0, 1),
                     .row_at = tensor_of(row_map(layout.diagonals(), buckets))};
    if (!options_.scaled) use_scale(operands, 1);
  }

 private:
  T5Options options_;
  std::optional<T5Buckets> causal_, bidirectional_;
};

std::unique_ptr<Method> make_t5(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("t5", json);
  const double width = static_cast<double>(std::max<int64_t>(shape.width, 1));
  const T5Options t5 = {
      .tables = options.flag("per_layer") ? shape.layers : 1,
      .heads = shape.heads,
      .init_std = options.optional_number("init_std", 0, 1e6).value_or(1 / std::sqrt(width)),
      .scaled = options.flag("scaled")};
  T5Buckets::Options buckets = {
      .buckets = options.integer("buckets", 2, int64_t{1} << 20),
      .max_distance = options.integer("max_distance", 2, (int64_t{1} << 31) - 1)};
  std::optional<T5Buckets> causal, bidirectional;
  const std::optional<bool> wanted = options.optional_flag("bidirectional");
  buckets.bidirectional = false;
  if (wanted != true) causal.emplace(buckets);
  buckets.bidirectional = true;
  if (wanted != false) bidirectional.emplace(buckets);
  return std::make_unique<T5>(t5, std::move(causal), std::move(bidirectional));
}

}  // namespace

MethodInfo t5_method() {
  return {.name = "t5",
          .summary = "A trained bias per bucket of distances (Raffel et al. 2019)",
          .formula = "s_ij = q_i . k_j + b[bucket(j - i), h]",
          .defaults = R"({"buckets": 32, "max_distance": 128, "bidirectional": null,
                          "per_layer": false, "scaled": false, "init_std": null})",
          .make = make_t5};
}

}  // namespace sextant
