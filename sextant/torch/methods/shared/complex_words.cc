#include "sextant/torch/methods/shared/complex_words.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>

#include <string>

#include "sextant/base/error.h"

namespace sextant {

void check_words(const at::Tensor& words, int64_t vocabulary) {
  if (words.numel() == 0) return;
  const int64_t least = words.min().item<int64_t>(), most = words.max().item<int64_t>();
  if (least < 0 || most >= vocabulary)
    fail("complex: words: expected 0 to " + std::to_string(vocabulary - 1) + ", but got " +
         std::to_string(least < 0 ? least : most));
}

at::Tensor of_words(const at::Tensor& table, const at::Tensor& words) {
  return table.dim() == 1 ? table : at::embedding(table, words);
}

at::Tensor angles_of_words(const at::Tensor& words, const at::Tensor& times, const at::Tensor& w,
                           const at::Tensor& theta) {
  const at::Tensor angle = of_words(w, words) * times;
  return theta.defined() ? angle + of_words(theta, words) : angle;
}

}  // namespace sextant
