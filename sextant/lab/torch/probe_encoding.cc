#include "sextant/lab/torch/probe_encoding.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/checked_json.h"
#include "sextant/models/init.h"
#include "sextant/torch/method.h"

namespace sextant::lab {
namespace {

constexpr uint64_t kSeed = 1;

std::vector<double> numbers(const at::Tensor& x) {
  const at::Tensor flat = x.contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace

std::vector<double> added_by(const Method& method, const ModelShape& shape, const Layout& layout,
                             Parameters parameters) {
  Layout applied = layout;
  if (method.reads_token_ids())  // the same id everywhere
    applied.token_ids = at::zeros({layout.batch, layout.queries}, at::kLong);
  for (const double value : {0.0, 1.0}) {
    const at::Tensor x = at::full({1, layout.queries, shape.width}, value, at::kDouble);
    for (const at::Tensor& made :
         {method.embed(x, applied, parameters), method.embed_last(x, applied, parameters)})
      if (!made.equal(x)) return numbers(made);
  }
  return {};
}

// The output of attention with the identity as values is the weights p; the scores are log p + lse.
std::vector<double> scores_by(const Method& method, const ModelShape& shape, const Layout& layout,
                              Parameters parameters) {
  const int64_t heads = shape.heads, key_heads = shape.key_heads, size = shape.head_dim;
  const at::Tensor key = normal_values({1, key_heads, 1, size}, 0, 1, kSeed, "plot");
  const at::Tensor query = key.unsqueeze(2)
                               .expand({1, key_heads, heads / key_heads, 1, size})
                               .reshape({1, heads, 1, size});
  const at::Tensor q = query.expand({1, heads, layout.queries, size});
  const at::Tensor x = key.expand({1, key_heads, layout.keys, size});
  const at::Tensor input =
      normal_values({1, 1, shape.width}, 0, 1, kSeed, "plot").expand({1, layout.keys, -1});
  const at::Tensor k = with_key_columns(method, x, input, /*layer=*/0, parameters);
  TensorOperands operands = plain_operands(q, k, x, layout);
  method.apply(operands, layout, /*layer=*/0, parameters);
  operands.on_value = {};
  operands.v = at::eye(layout.keys, at::kDouble).expand({1, key_heads, layout.keys, layout.keys});
  const auto [weights, lse] = attend(operands);
  return numbers((at::log(weights) + lse.unsqueeze(3)).masked_fill(weights == 0, std::nan("")));
}

ProbedEncoding probe_encoding(const EncodingRequest& request) {
  const at::NoGradGuard no_gradients;
  const ModelShape shape = {.layers = 1,
                            .heads = request.heads,
                            .key_heads = request.heads,
                            .head_dim = request.head_dim,
                            .width = request.heads * request.head_dim,
                            .train_length = request.length};
  const auto method =
      make_method(request.method, shape, checked_json_object(request.options, "options"));
  std::vector<at::Tensor> parameters;
  for (const ParameterSpec& spec : method->parameters())
    parameters.push_back(initial_value(spec, kSeed, "position." + spec.name));
  const Layout layout = {
      .queries = request.length, .keys = request.length, .causal = request.causal};
  return {.input = added_by(*method, shape, layout, parameters),
          .scores = scores_by(*method, shape, layout, parameters)};
}

}  // namespace sextant::lab
