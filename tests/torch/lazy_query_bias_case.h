// A query bias that is made for some queries at a time.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "sextant/torch/operands.h"
#include "tests/torch/dense.h"

namespace sextant::testing {

// Queries from position 3 on have biases of their own, made of two tensors; others those of
// position 3.
inline LazyQueryBias some_query_bias(const Diagonals& diagonals, int64_t at_once) {
  const auto rows = [](const std::vector<at::Tensor>& inputs, const QueryBlock& queries,
                       const Diagonals& seen) {
    at::Tensor distances = at::empty({seen.count}, at::kDouble);
    for (int64_t n = 0; n < seen.count; ++n)
      distances.data_ptr<double>()[n] = static_cast<double>(seen.distance(n));
    const at::Tensor at =
        at::tensor(queries.positions, at::kLong).clamp_min(3).to(at::kDouble).view({1, -1, 1});
    return at::sin(inputs[0].view({-1, 1, 1}) * distances / (at + 1)) + inputs[1] * at;
  };
  return {.inputs = {normal({4}, 20).requires_grad_(), normal({}, 21).requires_grad_()},
          .rows = rows,
          .diagonals = diagonals,
          .from = 3,
          .at_once = at_once};
}

}  // namespace sextant::testing
