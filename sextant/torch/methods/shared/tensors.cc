#include "sextant/torch/methods/shared/tensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {

at::Tensor tensor_of(std::span<const double> values, at::IntArrayRef sizes) {
  at::Tensor result = at::empty(sizes, at::kDouble);
  std::ranges::copy(values, result.data_ptr<double>());
  return result;
}

at::Tensor tensor_of(std::span<const double> values, at::IntArrayRef sizes,
                     const at::Tensor& like) {
  return on_device_of(like, tensor_of(values, sizes));
}

at::Tensor tensor_of(std::span<const int32_t> values) {
  at::Tensor result = at::empty({static_cast<int64_t>(values.size())}, at::kInt);
  std::ranges::copy(values, result.data_ptr<int32_t>());
  return result;
}

at::Tensor sizes_of_distances(const Diagonals& diagonals, const at::Tensor& like) {
  at::Tensor sizes = at::empty({1, diagonals.count}, at::kDouble);
  for (int64_t n = 0; n < diagonals.count; ++n)
    sizes.data_ptr<double>()[n] = static_cast<double>(std::abs(diagonals.distance(n)));
  return on_device_of(like, sizes);
}

const at::Tensor& of_layer(std::span<const at::Tensor> tensors, int64_t layer) {
  if (layer < 0 || layer >= static_cast<int64_t>(tensors.size()))
    fail("method: layer: expected 0 to " +
         std::to_string(static_cast<int64_t>(tensors.size()) - 1) + ", but got " +
         std::to_string(layer));
  return tensors[static_cast<size_t>(layer)];
}

}  // namespace sextant
