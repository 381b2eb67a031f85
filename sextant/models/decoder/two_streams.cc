// Permutation language models: the content stream and the query stream of XLNet (Yang et al. 2019,
// arXiv 1906.08237, section 2.3). Both use the same layers; keys and values of both are those of
// the content stream.
#include <ATen/ops/full_like.h>

#include "sextant/base/error.h"
#include "sextant/models/decoder/decoder.h"
#include "sextant/torch/operators/tensor_plan.h"

namespace sextant {

at::Tensor Decoder::permuted_losses(const at::Tensor& tokens, const at::Tensor& targets,
                                    const at::Tensor& order) const {
  if (tokens.dim() != 2 || targets.sizes() != tokens.sizes() || order.sizes() != tokens.sizes())
    fail("decoder: targets, order: expected [batch, length] as tokens, but got another shape");
  if (options_.query_token < 0)
    fail("decoder: order: expected a model with a query_token, but it has none");
  if (method_->recurs_over_input())
    fail(
        "decoder: order: expected a method without a recurrence over the input, which would show "
        "tokens of higher rank");
  return losses_of(query_stream(here(tokens), here(order)), here(targets));
}

at::Tensor Decoder::query_stream(const at::Tensor& tokens, const at::Tensor& order) const {
  Reading of_content = {.layout = layout_of(tokens, 0)};
  of_content.parameters = method_parameters();
  Reading of_queries = of_content;
  const at::Tensor visible = of_content.layout.mask;  // of keys, or undefined
  const at::Tensor of_rows = order.unsqueeze(2), of_keys = order.unsqueeze(1);
  const auto mask = [&](const at::Tensor& ranks) {
    const at::Tensor shown = ranks.unsqueeze(1);
    return visible.defined() ? shown.logical_and(visible) : shown;
  };
  of_content.layout.mask = mask(of_keys.le(of_rows));
  of_queries.layout.mask = mask(of_keys.lt(of_rows));
  for (Reading* reading : {&of_content, &of_queries})
    reading->layout.plans = std::make_shared<PlanCache>(kPlansOfDecoder);

  const auto input_of = [&](const at::Tensor& ids, const Reading& reading) {
    Layout layout = reading.layout;
    if (method_->reads_token_ids()) layout.token_ids = ids;
    return embedded(ids, layout, reading.parameters);
  };
  at::Tensor content = input_of(tokens, of_content);
  at::Tensor query = input_of(at::full_like(tokens, options_.query_token), of_queries);
  for (size_t index = 0; index < layers_.size(); ++index) {
    const bool last = index + 1 == layers_.size();
    if (last &&
        !method_->embed_last(query, of_queries.layout, of_queries.parameters).is_same(query))
      fail("decoder: order: expected a method without absolute positions in the last layer");
    query = run(query, content, index, of_queries);
    if (!last) content = run(content, content, index, of_content);
  }
  return query;
}

}  // namespace sextant
