// inkling: a bias by distance that each query mixes from trained profiles, and none far away.
//
// Inkling and Inkling 2 (models/inkling and inkling2 of transformers 5.24), x_i the layer's input:
//
//   s_ij = tau_i (q_i.k_j / d + r_i.P[:, i - j])   for 0 <= i - j < R, without P elsewhere
//   r_i  = W_r x_i,   tau_i = 1 + alpha ln max(1, (i + 1) / floor)
//
// P has a column for each distance below R and is shared by the heads of a layer; r_i has as many
// numbers ("columns") for each head. The normalisation of q and k is the layer's. "log_alpha": 0
// leaves tau out, as layers with a window do; R is then the window. Inkling 2 divides by sqrt(d)
// ("flavour": "inkling2"), and each query has a sink logit w_h.x_i of its own; it also limits the
// lengths of q, k and r, which is the layer's too.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

struct InklingOptions {
  int64_t columns = 16, reach = 1024;
  double alpha = 0, floor = 1;
  bool second = false;  // Inkling 2
};

class Inkling final : public Method {
 public:
  Inkling(const ModelShape& shape, const InklingOptions& options)
      : shape_(shape), options_(options) {}

  // P and W_r of each layer, and in Inkling 2 its w.
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (int64_t n = 0; n < shape_.layers; ++n) {
      const std::string layer = "layers." + std::to_string(n) + ".self_attn.";
      const auto add = [&](const std::string& name, std::vector<int64_t> sizes, bool decays) {
        specs.push_back(ParameterSpec::normal(layer + name, std::move(sizes), 0.02, decays));
      };
      add("rel_logits_proj.proj", {options_.columns, options_.reach}, false);
      add("r_proj.weight", {shape_.heads * options_.columns, shape_.width}, true);
      if (options_.second) add("sink_proj.weight", {shape_.heads, shape_.width}, true);
    }
    return specs;
  }

  bool relative() const override { return options_.alpha == 0; }

  int64_t further_query_columns() const override {
    return options_.columns + (options_.second ? 1 : 0);
  }
  at::Tensor query_columns(const at::Tensor& x, int64_t layer,
                           Parameters parameters) const override {
    const Parameters own = of(parameters, layer);
    at::Tensor r =
        at::linear(x, own[1]).unflatten(2, {shape_.heads, options_.columns}).transpose(1, 2);
    if (!options_.second) return r;
    return at::cat({r, at::linear(x, own[2]).transpose(1, 2).unsqueeze(3)}, 3);
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const at::Tensor all = operands.q;
    operands.q = all.slice(3, 0, shape_.head_dim);
    operands.table_query = all.slice(3, shape_.head_dim, shape_.head_dim + options_.columns);
    if (options_.second) operands.query_sink = all.select(3, shape_.head_dim + options_.columns);
    if (options_.alpha != 0) {
      const at::Tensor tau = factors(layout, all);
      operands.q = operands.q * tau;
      operands.table_query = operands.table_query * tau;
    }
    const at::Tensor profiles = of(parameters, layer)[0].transpose(0, 1);  // [R, columns]
    const Diagonals diagonals = layout.diagonals();
    std::vector<int32_t> rows;
    for (int64_t n = 0; n < diagonals.count; ++n) {
      const int64_t distance = diagonals.distance(n);
      const bool near = distance >= 0 && distance < options_.reach;
      rows.push_back(static_cast<int32_t>(near ? distance : options_.reach));
    }
    operands.on_query = {
        .rows =
            at::cat({profiles, at::zeros({1, options_.columns}, profiles.options())}).unsqueeze(0),
        .row_at = tensor_of(rows)};
    if (!options_.second) use_scale(operands, 1 / static_cast<double>(shape_.head_dim));
  }

 private:
  Parameters of(Parameters all, int64_t layer) const {
    const size_t count = options_.second ? 3 : 2;
    of_layer(all, static_cast<int64_t>(count) * layer);  // throws Error if there is no such layer
    return all.subspan(count * static_cast<size_t>(layer), count);
  }

  // tau of each query, [1, 1, queries, 1].
  at::Tensor factors(const Layout& layout, const at::Tensor& like) const {
    std::vector<double> values;
    const at::Tensor positions = query_positions(layout);
    for (int64_t n = 0; n < positions.size(0); ++n) {
      const auto seen = static_cast<double>(positions.data_ptr<int64_t>()[n] + 1);
      values.push_back(1 + options_.alpha * std::log(std::max(1.0, seen / options_.floor)));
    }
    return tensor_of(values, {1, 1, positions.size(0), 1}, like).to(like.options());
  }

  ModelShape shape_;
  InklingOptions options_;
};

std::unique_ptr<Method> make_inkling(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("inkling", json);
  return std::make_unique<Inkling>(
      shape, InklingOptions{.columns = options.integer("columns", 1, 4096),
                            .reach = options.integer("reach", 1, int64_t{1} << 24),
                            .alpha = options.number("log_alpha", 0, 1e6),
                            .floor = options.number("log_floor", 1e-6, 1e15),
                            .second = options.choice("flavour", {"inkling", "inkling2"}) == 1});
}

}  // namespace

MethodInfo inkling_method() {
  return {.name = "inkling",
          .summary = "A bias by distance that each query mixes from profiles (Inkling, 2026)",
          .formula =
              "s_ij = tau_i (q_i . k_j / d + r_i . P[:, i - j]); r_i = W_r x_i; "
              "tau_i = 1 + alpha ln max(1, (i + 1) / floor)",
          .defaults = R"({"columns": 16, "reach": 1024, "log_alpha": 0.0, "log_floor": 1.0,
                          "flavour": "inkling"})",
          .make = make_inkling,
          .tests = {.options = R"({"columns": 3, "reach": 6})"}};
}

}  // namespace sextant
