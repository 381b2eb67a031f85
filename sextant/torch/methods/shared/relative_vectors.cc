#include "sextant/torch/methods/shared/relative_vectors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <vector>

#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {

ClippedDistances clipped_distances(const Diagonals& diagonals, int64_t low, int64_t high) {
  ClippedDistances result;
  if (diagonals.count <= 0) return result;
  result.farthest = std::clamp(diagonals.farthest, low, high);
  const int64_t nearest = std::clamp(diagonals.distance(diagonals.count - 1), low, high);
  result.count = result.farthest - nearest + 1;
  if (result.count == diagonals.count) return result;
  std::vector<int32_t> rows;
  for (int64_t n = 0; n < diagonals.count; ++n)
    rows.push_back(static_cast<int32_t>(
        result.farthest - std::clamp(diagonals.distance(n), nearest, result.farthest)));
  result.row_at = tensor_of(rows);
  return result;
}

at::Tensor SinusoidTable::rows(const ClippedDistances& distances, int64_t sign,
                               const at::Tensor& like) const {
  const std::lock_guard lock(mutex_);
  Kept& kept = kept_[sign > 0 ? 0 : 1];
  if (kept.rows.defined() && kept.farthest == distances.farthest &&
      kept.rows.size(0) == distances.count && kept.rows.scalar_type() == like.scalar_type())
    return table_on_device_of(like, kept.rows);
  // The table outlives this call, so it must be a plain tensor even if inference mode is on, or a
  // Python mode that counts or fakes operators.
  const c10::InferenceMode inference(false);
  const c10::impl::ExcludeDispatchKeyGuard python(
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
  const at::Tensor rows = at::empty({distances.count, sinusoid_.width()}, at::kDouble);
  sinusoid_.write_rows(sign * distances.farthest, distances.count, -sign,
                       {rows.data_ptr<double>(), static_cast<size_t>(rows.numel())});
  kept = {.farthest = distances.farthest, .rows = rows.to(like.scalar_type())};
  return table_on_device_of(like, kept.rows);
}

void place_with_biases(TensorOperands& operands, const TableOperand& table, const at::Tensor& u,
                       const at::Tensor& v) {
  const at::Tensor products =
      at::matmul(table.rows, (v - u).unsqueeze(2)).squeeze(2);  // [heads, R]
  operands.bias = {.rows = operands.scale * products, .row_at = table.row_at};
  operands.on_query = table;
  operands.q = operands.q + u.unsqueeze(1);
}

}  // namespace sextant
