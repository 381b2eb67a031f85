#include "sextant/torch/methods/relative_vectors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>

#include <algorithm>

#include "sextant/torch/methods/tensors.h"

namespace sextant {

ClippedDistances clipped_distances(const Diagonals& diagonals, int64_t low, int64_t high) {
  ClippedDistances result;
  if (diagonals.count <= 0) return result;
  const int64_t farthest = std::clamp(diagonals.farthest, low, high);
  const int64_t nearest = std::clamp(diagonals.distance(diagonals.count - 1), low, high);
  for (int64_t distance = farthest; distance >= nearest; --distance)
    result.of_row.push_back(distance);
  if (std::ssize(result.of_row) == diagonals.count) return result;
  std::vector<int32_t> rows;
  for (int64_t n = 0; n < diagonals.count; ++n)
    rows.push_back(
        static_cast<int32_t>(farthest - std::clamp(diagonals.distance(n), nearest, farthest)));
  result.row_at = tensor_of(rows);
  return result;
}

at::Tensor sinusoids(const Sinusoid& sinusoid, const std::vector<int64_t>& distances, int64_t sign,
                     const at::Tensor& like) {
  std::vector<int64_t> positions = distances;
  for (int64_t& position : positions) position *= sign;
  return tensor_of(sinusoid.rows(positions),
                   {static_cast<int64_t>(positions.size()), sinusoid.width()})
      .to(like.options());
}

void place_with_biases(Operands& operands, const TableOperand& table, const at::Tensor& u,
                       const at::Tensor& v) {
  const at::Tensor products =
      at::matmul(table.rows, (v - u).unsqueeze(2)).squeeze(2);  // [heads, R]
  operands.bias = {.rows = operands.scale * products, .row_at = table.row_at};
  operands.on_query = table;
  operands.q = operands.q + u.unsqueeze(1);
}

}  // namespace sextant
