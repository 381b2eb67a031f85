#include "sextant/torch/methods/shared/complex_words.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>

#include <string>

#include "sextant/base/error.h"

namespace sextant {

void check_words(const at::Tensor& token_ids, int64_t vocabulary) {
  if (token_ids.numel() == 0) return;
  const int64_t least = token_ids.min().item<int64_t>(), most = token_ids.max().item<int64_t>();
  if (least < 0 || most >= vocabulary)
    fail("complex: token_ids: expected 0 to " + std::to_string(vocabulary - 1) + ", but got " +
         std::to_string(least < 0 ? least : most));
}

at::Tensor of_words(const at::Tensor& table, const at::Tensor& token_ids) {
  return table.dim() == 1 ? table : at::embedding(table, token_ids);
}

at::Tensor angles_of_token_ids(const at::Tensor& token_ids, const at::Tensor& rotary_positions,
                               const at::Tensor& w, const at::Tensor& theta) {
  const at::Tensor angle = of_words(w, token_ids) * rotary_positions;
  return theta.defined() ? angle + of_words(theta, token_ids) : angle;
}

}  // namespace sextant
